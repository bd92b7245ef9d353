package web

// crmPages are the pages of the CRM side's console. Add each here once; empty is enough, New makes up what it holds.
func crmPages() []Page {
	return []Page{}
}
