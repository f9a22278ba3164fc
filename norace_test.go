//go:build !race

package nacos

const raceDetector = false
