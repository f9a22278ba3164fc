package mininacos

import "fmt"

// apiError is what an API refuses a request with.
type apiError struct {
	status int
	msg    string
}

func (e *apiError) Error() string { return fmt.Sprintf("mininacos: %s (status %d)", e.msg, e.status) }

func badRequest(msg string) *apiError { return &apiError{400, msg} }

// notANumber is what Java says of text that is none.
func notANumber(text string) *apiError { return badRequest(`For input string: "` + text + `"`) }

func required(param string) *apiError { return badRequest("Param '" + param + "' is required.") }

// kindError refuses an instance of the other kind than its service, which is ephemeral or not (S6).
func kindError(k serviceKey, ephemeral bool) error {
	is, other := "persistent", "ephemeral"
	if ephemeral {
		is, other = other, is
	}
	return badRequest(fmt.Sprintf("errCode: 400, errMsg: Current service %s is %s service, can't register %s instance. ", k.grouped(), is, other))
}

func serviceNotFound(k serviceKey) error {
	return &apiError{500, fmt.Sprintf("service not found, namespace: %s, service: Service{namespace='%s', group='%s', name='%s', ephemeral=true, revision=0}",
		k.namespace, k.namespace, k.group, k.name)}
}
