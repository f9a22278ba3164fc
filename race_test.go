//go:build race

package nacos

// raceDetector says that everything takes about seven times as long.
const raceDetector = true
