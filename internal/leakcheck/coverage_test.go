package leakcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryTestChecksForLeaks(t *testing.T) {
	Covered(t, ".")
}

func TestUncovered(t *testing.T) {
	Check(t)
	const imports = `
		import "testing"
		import "testing/synctest"
		import "github.com/nacos-naming/nacos/internal/leakcheck"
	`
	for _, c := range []struct {
		name, source string
		want         []string
	}{
		{"calls Check", `package p; ` + imports + `func TestA(t *testing.T) { leakcheck.Check(t) }`, nil},
		{"runs in a bubble", `package p; ` + imports + `func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) {}) }`, nil},
		{"calls Covered", `package p; ` + imports + `func TestA(t *testing.T) { leakcheck.Covered(t, ".") }`, nil},
		{"neither", `package p; ` + imports + `func TestA(t *testing.T) { t.Log() }; func TestB(t *testing.T) {}`, []string{"TestA", "TestB"}},
		{"a bubble in each subtest", `package p; ` + imports + `func TestA(t *testing.T) { for range 3 { t.Run("x", func(t *testing.T) { synctest.Test(t, nil) }) } }`, nil},
		{"through a helper", `package p; ` + imports + `func TestA(t *testing.T) { bubble(t, nil) }; func bubble(t *testing.T, f func()) { synctest.Test(t, nil) }`, nil},
		{"through two", `package p; ` + imports + `func TestA(t *testing.T) { a(t) }; func a(t *testing.T) { b(t) }; func b(t *testing.T) { leakcheck.Check(t) }`, nil},
		{"a helper passed as a value", `package p; ` + imports + `func TestA(t *testing.T) { t.Run("x", a) }; func a(t *testing.T) { leakcheck.Check(t) }`, nil},
		{"in the receiver of a method", `package p; ` + imports + `func TestA(t *testing.T) { world(t).run() }; func world(t *testing.T) x { leakcheck.Check(t) }`, nil},
		{"helpers that call each other in a circle", `package p; ` + imports + `func TestA(t *testing.T) { a() }; func a() { b() }; func b() { a() }`, []string{"TestA"}},
		{"a method of the helper's name", `package p; ` + imports + `func TestA(t *testing.T) { x.bubble() }; func bubble(t *testing.T) { leakcheck.Check(t) }`, []string{"TestA"}},
		{"through a method", `package p; ` + imports + `func TestA(t *testing.T) { s.bubble() }; func (x) bubble() { leakcheck.Check(t) }`, nil},
		{"through one of two methods", `package p; ` + imports + `func TestA(t *testing.T) { s.bubble() }; func (x) bubble() { leakcheck.Check(t) }; func (y) bubble() {}`, nil},
		{"a function of the method's name", `package p; ` + imports + `func TestA(t *testing.T) { bubble() }; func (x) bubble() { leakcheck.Check(t) }`, []string{"TestA"}},
		{"a stranger's Check", `package p; import "testing"; import "example.com/leakcheck"; func TestA(t *testing.T) { leakcheck.Check(t) }`, []string{"TestA"}},
		{"a Check of its own", `package p; ` + imports + `func TestA(t *testing.T) { Check(t) }; func Check(t *testing.T) {}`, []string{"TestA"}},
		{"another function of synctest", `package p; ` + imports + `func TestA(t *testing.T) { synctest.Wait() }`, []string{"TestA"}},
		{"imported by another name", `package p; import "testing"; import lc "github.com/nacos-naming/nacos/internal/leakcheck"; func TestA(t *testing.T) { lc.Check(t) }`, nil},
		{"not called by go test", `package p; ` + imports + `func TestMain(m *testing.M) {}; func Testify(t *testing.T) {}; func (x) TestA(t *testing.T) {}; func TestB() {}; func BenchmarkC(b *testing.B) {}`, nil},
		{"the shortest name", `package p; ` + imports + `func Test(t *testing.T) {}; func Test_a(t *testing.T) {}; func Test1(t *testing.T) {}`, []string{"Test", "Test_a", "Test1"}},
	} {
		assert.Equal(t, c.want, uncoveredIn(t, c.source), c.name)
	}
}

// A helper may stand in another file, but not in another package: pkg_test does not see
// what pkg's test files declare in lower case.
func TestUncoveredAcrossFiles(t *testing.T) {
	Check(t)
	const helper = `; import "testing"; import "testing/synctest"; func bubble(t *testing.T) { synctest.Test(t, nil) }`
	const test = `; import "testing"; func TestA(t *testing.T) { bubble(t) }`
	assert.Empty(t, uncoveredIn(t, "package p"+test, "package p"+helper))
	assert.Equal(t, []string{"TestA"}, uncoveredIn(t, "package p_test"+test, "package p"+helper))
}

func uncoveredIn(t *testing.T, sources ...string) []string {
	t.Helper()
	var files []*ast.File
	for _, source := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", source, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	var names []string
	for _, f := range uncovered(files) {
		names = append(names, f.Name.Name)
	}
	return names
}

// failures is a testing.TB that keeps what would fail the test.
type failures struct {
	testing.TB
	lines []string
}

func (f *failures) Errorf(format string, args ...any) { f.lines = append(f.lines, format) }

func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

func TestCoveredReportsToTheTest(t *testing.T) {
	Check(t)
	covered := func(source string) (failed []string) {
		dir := t.TempDir()
		if source != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600))
		}
		f := &failures{TB: t}
		defer func() {
			recover()
			failed = f.lines
		}()
		Covered(f, dir)
		return nil
	}
	const head = `package p; import "testing"; import "github.com/nacos-naming/nacos/internal/leakcheck"; `
	assert.Empty(t, covered(head+`func TestA(t *testing.T) { leakcheck.Check(t) }`))
	for name, source := range map[string]string{
		"no leak check follows": head + `func TestA(t *testing.T) {}`,
		"no tests in":           "",
		"leakcheck: %v":         "package",
	} {
		failed := covered(source)
		require.Len(t, failed, 1, name)
		assert.True(t, strings.Contains(failed[0], name), failed[0])
	}
}
