package sweagent_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// Lengths of the histories, and steps whose response is not in the history.
func TestSWEAgentFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ messages, unsaid int }{
		"ctf--crypto--BabyEncryption":  {31, 1},
		"ctf--crypto--BabyTimeCapsule": {19, 0},
		"ctf--crypto--eps":             {29, 0},
		"ctf--crypto--katy":            {37, 1},
		"ctf--forensics--flash":        {9, 0},
		"ctf--misc--networking_1":      {9, 0},
		"ctf--pwn--warmup":             {15, 0},
		"ctf--rev--rock":               {25, 0},
		"ctf--web--i_got_id_demo":      {43, 1},
		"function_calling_simple":      {12, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, _ := formattest.Read(t, formattest.Shared(t, "swe-agent/"+name+".traj"), "")
			unsaid := 0
			for _, n := range report.Notes {
				if n.Kind == format.KindContent {
					unsaid++
				}
			}
			if report.Format != "swe-agent" || report.Messages != want.messages || report.Leaves != 1 || unsaid != want.unsaid {
				t.Errorf("%s and %d responses left out, want %d messages and %d", formattest.Count(report), unsaid, want.messages, want.unsaid)
			}
		})
	}
}
