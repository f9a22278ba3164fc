package mininacos

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nacos-naming/nacos/internal/wire"
)

// serviceList is a page of the names of a group's services, in order of creation (the real server's has none). A page
// number that is none is the first, a page size that is none is 0.
func (s *Server) serviceList(p params) (reply, error) {
	text, err := p.required(wire.ParamPageNo)
	if err != nil {
		return reply{}, err
	}
	no := toInt(text, 1)
	if text, err = p.required(wire.ParamPageSize); err != nil {
		return reply{}, err
	}
	size := toInt(text, 0)
	group := p.optional(wire.ParamGroupName, wire.DefaultGroup)
	names := s.reg.serviceNames(p.namespace(), group)
	from := max((no-1)*size, 0)
	to := min(from+size, len(names))
	if size < 0 {
		return reply{}, badRequest("fromIndex(" + strconv.Itoa(from) + ") > toIndex(" + strconv.Itoa(to) + ")")
	}
	page := wire.ServiceList{Count: len(names), Names: []string{}}
	if from < to {
		page.Names = names[from:to]
	}
	return jsonReply(wire.AppendServiceList(nil, page)), nil
}

func toInt(text string, def int) int {
	n, err := parseInt(text)
	if err != nil {
		return def
	}
	return n
}

// metrics says that the server is up, and on request how much it has.
func (s *Server) metrics(p params) reply {
	status := struct {
		Status string `json:"status"`
	}{"UP"}
	if strings.EqualFold(p.optional("onlyStatus", "true"), "true") {
		body, _ := json.Marshal(status)
		return jsonReply(body)
	}
	m := s.reg.count(s)
	m.Status = status.Status
	body, _ := json.Marshal(m)
	return jsonReply(body)
}
