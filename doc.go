// Package nacos will hold the Go client for Nacos naming. Its files are being written behind the build tag
// nacos_next until they are complete; mininacos, the embeddable naming server, works today.
package nacos
