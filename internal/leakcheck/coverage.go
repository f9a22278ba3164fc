package leakcheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// watchers are the functions that see goroutines a test leaves behind: those of this
// package, and synctest.Test, whose bubble does not end while one lives in it.
var watchers = map[watcher]bool{
	{importPath, "Check"}:        true,
	{importPath, "Covered"}:      true,
	{"testing/synctest", "Test"}: true,
}

const importPath = "github.com/nacos-naming/nacos/internal/leakcheck"

type watcher struct{ path, name string }

// Covered fails t for every TestXxx in the _test.go files of dir that neither calls
// [Check] nor runs in a bubble (synctest.Test), itself or through functions and methods of
// its test package. A package calls it in one test, with ".", so that a leak check
// follows each of its tests, also those of tomorrow; that test is checked like by Check.
//
// It reads the source and does not run it: what a test or a function names counts as
// called, wherever in the body it stands, and a method of any type by its name alone.
func Covered(t testing.TB, dir string) {
	t.Helper()
	Check(t)
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatalf("leakcheck: list the tests of %s: %v", dir, err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("leakcheck: %v", err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("leakcheck: no tests in %s", dir)
	}
	for _, f := range uncovered(files) {
		t.Errorf("%s: no leak check follows %s: begin it with leakcheck.Check(t) or run it in synctest.Test", fset.Position(f.Pos()), f.Name.Name)
	}
}

// uncovered returns the tests of the files that reach no watcher, in the order of the files.
func uncovered(files []*ast.File) []*ast.FuncDecl {
	uses := make(map[string][]*usage) // by package name and function: a folder may hold pkg and pkg_test
	var tests []*ast.FuncDecl
	keys := make(map[*ast.FuncDecl]string)
	for _, file := range files {
		imports := importNames(file)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			key := functionKey(file, f.Name.Name)
			if f.Recv != nil {
				key = methodKey(file, f.Name.Name)
			}
			keys[f] = key
			uses[key] = append(uses[key], usageOf(file, imports, f.Body))
			if isTest(f) {
				tests = append(tests, f)
			}
		}
	}
	var bad []*ast.FuncDecl
	for _, f := range tests {
		if !reaches(uses, keys[f], make(map[string]bool)) {
			bad = append(bad, f)
		}
	}
	return bad
}

func functionKey(file *ast.File, name string) string {
	return fmt.Sprintf("%s.%s", file.Name.Name, name)
}

func methodKey(file *ast.File, name string) string {
	return fmt.Sprintf("%s.(method).%s", file.Name.Name, name)
}

// usage is what a function's body refers to.
type usage struct {
	watched   bool
	functions []string // keys of what may be functions and methods of the package
}

func usageOf(file *ast.File, imports map[string]string, body *ast.BlockStmt) *usage {
	u := new(usage)
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && watchers[watcher{imports[pkg.Name], n.Sel.Name}] {
				u.watched = true
			}
			u.functions = append(u.functions, methodKey(file, n.Sel.Name))
			ast.Inspect(n.X, visit)
			return false // n.Sel is no function of this package
		case *ast.Ident:
			if file.Name.Name == "leakcheck" && watchers[watcher{importPath, n.Name}] {
				u.watched = true
			}
			u.functions = append(u.functions, functionKey(file, n.Name))
		}
		return true
	}
	ast.Inspect(body, visit)
	return u
}

func reaches(uses map[string][]*usage, key string, seen map[string]bool) bool {
	if seen[key] {
		return false
	}
	seen[key] = true
	for _, u := range uses[key] {
		if u.watched {
			return true
		}
		for _, next := range u.functions {
			if reaches(uses, next, seen) {
				return true
			}
		}
	}
	return false
}

// importNames maps the names of a file's imports to their paths.
func importNames(file *ast.File) map[string]string {
	names := make(map[string]string)
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, "`\"")
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// isTest tells what go test runs as a test: TestXxx(t *testing.T), where Xxx does not begin
// with a lower case letter. TestMain takes a *testing.M.
func isTest(f *ast.FuncDecl) bool {
	rest, ok := strings.CutPrefix(f.Name.Name, "Test")
	if !ok || f.Recv != nil || len(f.Type.Params.List) != 1 {
		return false
	}
	if first, _ := utf8.DecodeRuneInString(rest); rest != "" && unicode.IsLower(first) {
		return false
	}
	star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "T"
}
