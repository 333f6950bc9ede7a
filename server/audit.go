package server

func listAuditEvents(r *Request) (Answer, error) {
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	whose, err := r.tenantAsked(r.Query("tenant_id"))
	if err != nil {
		return nil, err
	}
	page, err := r.Store().For(whose).Admin().AuditEvents(r.Context(), p)
	if err != nil {
		return nil, err
	}
	return answerPage(page)
}
