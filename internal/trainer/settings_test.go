package trainer

import (
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/rundir"
)

// What a script fixes in its text, and what the project's own launch line says, are candidates with their place; the launch line is the
// weightier.
func TestFixedValuesAreCandidates(t *testing.T) {
	f := newFixture(t)
	f.write("net.py", "import torch\nBATCH = 64\nEPOCHS = 30\n\ndef main():\n    optimizer = torch.optim.AdamW([], lr=3e-4)\n    torch.utils.data.DataLoader([], batch_size=BATCH)\n    for epoch in range(EPOCHS):\n        optimizer.step()\n\nif __name__ == \"__main__\":\n    main()\n")
	f.write("launch.sh", "#!/bin/sh\npython net.py --epochs 12 \\\n  --seed 3\n")
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.handoff.Inputs.Model.TrainingEntrypoint = "net.py"
	f.handoff.Inputs.Parameters = contract.Parameters{}
	answer := f.walk()
	var candidates []evidence.Fact
	if err := rundir.ReadJSON(f.file(answer, candidatesFile), &candidates); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range candidates {
		if c.By == byServer && got[c.Field] == "" {
			got[c.Field] = strings.Join([]string{jsonText(c.Value), c.Why, strings.Join(strings.Fields(c.Quote), " ")}, " | ")
		}
	}
	for field, want := range map[string]string{
		"training.optimizer":           `"AdamW" | net.py:6 | torch.optim.AdamW`,
		"training.extra.learning_rate": `0.0003 | net.py:6 | lr=3e-4`,
		"training.batch_size":          `64 | net.py:2 | BATCH = 64`,
		"training.epochs_or_steps":     `12 | launch.sh:2 | --epochs 12`,
		"training.extra.seed":          `3 | launch.sh:3 | --seed 3`,
	} {
		if got[field] != want {
			t.Errorf("%s: %s, want %s", field, got[field], want)
		}
	}
}
