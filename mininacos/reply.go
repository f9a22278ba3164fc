package mininacos

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	typeText = "text/plain;charset=UTF-8"
	typeJSON = "application/json"
	typeHTML = "text/html;charset=utf-8"
)

// reply is an answer before it is sent.
type reply struct {
	status      int
	contentType string // "": none is sent
	body        [][]byte
	noCache     bool // as answers of the parameter check say
}

func textReply(status int, text string) reply {
	return reply{status: status, contentType: typeText, body: [][]byte{[]byte(text)}}
}

func jsonReply(body []byte) reply {
	return reply{status: 200, contentType: typeJSON, body: [][]byte{body}}
}

// causedReply is how the server's exception handlers answer: a text "caused: ..;", escaped as HTML in a 500 only.
func causedReply(status int, msg string) reply {
	if status == http.StatusInternalServerError {
		msg = htmlEscaper.Replace(msg)
	}
	return textReply(status, "caused: "+msg+";")
}

// pageReply is the JSON page of errors that happen outside the API's own code: in filters, or because there is no such API.
func pageReply(status int, msg, path string) reply {
	page := struct {
		Timestamp string `json:"timestamp"`
		Status    int    `json:"status"`
		Error     string `json:"error"`
		Message   string `json:"message"`
		Path      string `json:"path"`
	}{time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"), status, http.StatusText(status), msg, path}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(page) // into memory, of strings
	return reply{status: status, contentType: typeJSON, body: [][]byte{[]byte(strings.TrimSuffix(b.String(), "\n"))}}
}

// htmlPageReply is the page of the servlet container, outside of the context path.
func htmlPageReply(status int) reply {
	title := "HTTP Status " + strconv.Itoa(status) + " - " + http.StatusText(status)
	return reply{status: status, contentType: typeHTML, body: [][]byte{[]byte(
		`<!doctype html><html lang="en"><head><title>` + title + `</title></head><body><h1>` + title + `</h1></body></html>`)}}
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

func (r *reply) size() int {
	n := 0
	for _, part := range r.body {
		n += len(part)
	}
	return n
}

// write sends the answer. The real server closes the connection after most errors; so does this one.
func (r *reply) write(w http.ResponseWriter, head bool) {
	h := w.Header()
	h["Content-Type"] = nil // none, not one guessed from the body
	if r.contentType != "" {
		h.Set("Content-Type", r.contentType)
	}
	if r.noCache {
		h.Set("Cache-Control", "no-cache,no-store")
	}
	switch r.status {
	case http.StatusBadRequest, http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable:
		h.Set("Connection", "close")
	}
	h.Set("Content-Length", strconv.Itoa(r.size()))
	w.WriteHeader(r.status)
	if head {
		return
	}
	for _, part := range r.body {
		if _, err := w.Write(part); err != nil {
			return // the client went
		}
	}
}
