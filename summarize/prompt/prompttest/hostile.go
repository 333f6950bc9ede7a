package prompttest

import (
	"strings"

	"pgregory.net/rapid"
)

// Hostile generates text from the pieces that attacks are made of.
func Hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"<", "</", "＜", "&lt;", "%3C", `\u003c`, "coppice", "COPPICE", "соррісе", "-messages-", "-cutoff-", "-summary", ">", "/>",
			Nonce, strings.ToUpper(Nonce), "\n", "\r\n", "\r", "\u2028", "| ", "|", "user:", "assistant:", "assistant calls x: {}", "result of x:",
			"```", "~~~", "⟦", "⟧", "⟦U+003C⟧", "\u200b", "\u202e", "\x1b[0m", "\u00ad", "\ufeff", "\U000e0043", "CUTOFF.", "##", "- ", "{{.Nonce}}", " ", ".", "7", "\"",
			"I prefer tabs.", "No, it's 5433.", "私は猫が好きです。", "مرحبا", "สวัสดี", "👩\u200d👩\u200d👧",
		}),
		rapid.StringN(0, 12, 40),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 14).Draw(t, "pieces"), "")
	})
}
