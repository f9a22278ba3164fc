package mininacos

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nacos-naming/nacos/internal/wire"
)

// contextPath is where the server's APIs are, as on a real server by default.
const contextPath = "/nacos"

const namingPath = "/v1/ns"

// API names what a request asks for.
type API string

// The APIs the server has; every other request is APIOther.
const (
	APIRegister    API = "register"
	APIDeregister  API = "deregister"
	APIUpdate      API = "update"
	APIList        API = "list"
	APIBeat        API = "beat"
	APIServiceList API = "service list"
	APIMetrics     API = "metrics"
	APIOther       API = "other"
)

// apiOf finds the API of a method and a path. A trailing slash is no difference.
func apiOf(method, path string) API {
	path, ok := strings.CutPrefix(path, contextPath)
	if !ok {
		return APIOther
	}
	switch method + " " + strings.TrimSuffix(path, "/") {
	case "POST " + wire.PathInstance:
		return APIRegister
	case "DELETE " + wire.PathInstance:
		return APIDeregister
	case "PUT " + wire.PathInstance:
		return APIUpdate
	case "GET " + wire.PathInstanceList:
		return APIList
	case "PUT " + wire.PathBeat:
		return APIBeat
	case "GET " + wire.PathServiceList:
		return APIServiceList
	case "GET " + wire.PathMetrics:
		return APIMetrics
	}
	return APIOther
}

// serve answers one request; done ends with the server.
func (s *Server) serve(done context.Context, w http.ResponseWriter, r *http.Request) {
	p, err := readParams(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client went, or the server stops
	}
	req := newRequest(r, p)
	s.requests.add(req)
	fault := s.faults.find(req)
	if !fault.before(done, w, r) {
		return
	}
	var rep reply
	if fault.Status != 0 {
		rep = fault.reply()
	} else {
		rep = s.answer(req.API, r, p)
	}
	fault.after(done, w, r, &rep)
}

// answer does what a request asks for.
func (s *Server) answer(api API, r *http.Request, p params) reply {
	if api == APIOther {
		return noSuchAPI(r)
	}
	path := r.URL.EscapedPath()
	var beat *wire.Beat
	if text := p.optional(wire.ParamBeat, ""); api == APIBeat && text != "" {
		var msg string
		if beat, msg = decodeBeat(text); msg != "" {
			return faultReply(p, msg, path)
		}
	}
	values, msg := collect(api, p, beat)
	if msg != "" {
		return faultReply(p, msg, path)
	}
	if msg := nameFault(p); msg != "" {
		return pageReply(http.StatusBadRequest, msg, path)
	}
	if msg := values.illegal(); msg != "" {
		return checkReply(msg)
	}
	rep, err := s.call(api, p, beat)
	if refused := (*apiError)(nil); errors.As(err, &refused) {
		return causedReply(refused.status, refused.msg)
	}
	return rep
}

func (s *Server) call(api API, p params, beat *wire.Beat) (reply, error) {
	switch api {
	case APIRegister:
		return s.register(p)
	case APIDeregister:
		return s.deregister(p)
	case APIUpdate:
		return s.update(p)
	case APIList:
		return s.list(p)
	case APIBeat:
		return s.beat(p, beat)
	case APIServiceList:
		return s.serviceList(p)
	default:
		return s.metrics(p), nil
	}
}

// noSuchAPI answers what the server does not have.
func noSuchAPI(r *http.Request) reply {
	path := r.URL.EscapedPath()
	switch {
	case path == contextPath+namingPath || strings.HasPrefix(path, contextPath+namingPath+"/"):
		return pageReply(http.StatusNotImplemented, "no such api:"+r.Method+":"+path, path)
	case path == contextPath || strings.HasPrefix(path, contextPath+"/"):
		return pageReply(http.StatusNotFound, "No message available", path)
	}
	return htmlPageReply(http.StatusNotFound)
}

// faultReply is the answer to parameters that cannot be read. A service name that is wrong as well makes the real server
// stumble over its own first answer.
func faultReply(p params, msg, path string) reply {
	if nameFault(p) != "" {
		msg = "Cannot call sendError() after the response has been committed"
	}
	return pageReply(http.StatusInternalServerError, msg, path)
}

// decodeBeat reads the beat parameter; msg is what is wrong with it. The real server quotes its JSON library's words, of
// which only the commonest are imitated.
func decodeBeat(text string) (beat *wire.Beat, msg string) {
	if text == "null" {
		return nil, `Server failed, caused: Cannot invoke "com.alibaba.nacos.naming.healthcheck.RsInfo.getIp()" because "rsInfo" is null;`
	}
	beat, err := wire.DecodeBeat([]byte(text))
	if err == nil {
		return beat, ""
	}
	cause := "Unrecognized JSON\n at [Source: (String)\"" + text + "\"; line: 1, column: 1]"
	if rest := strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(rest, "{") {
		if c, size := utf8.DecodeRuneInString(rest[1:]); size > 0 && c != '"' && c != '}' {
			column := len(text) - len(rest) + 3 // counted from 1, and after the character
			cause = "Unexpected character ('" + string(c) + "' (code " + strconv.Itoa(int(c)) + ")): was expecting double-quote to start field name\n" +
				" at [Source: (String)\"" + text + "\"; line: 1, column: " + strconv.Itoa(column) + "]"
		}
	}
	return nil, "Server failed, caused: errCode: 101, errMsg: Nacos deserialize for class [com.alibaba.nacos.naming.healthcheck.RsInfo] failed, cause error[" +
		cause + "].  ;caused: " + cause + ";"
}
