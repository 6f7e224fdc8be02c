//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/jobs"
)

// groups writes a tree with control groups as the kernel shows them.
func groups(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		script(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	return root
}

func TestQuotaOfControlGroups(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  quota
	}{
		"none": {map[string]string{}, quota{}},
		"version 2 without limits": {map[string]string{"proc/self/cgroup": "0::/user\n", "sys/fs/cgroup/user/cpu.max": "max 100000\n",
			"sys/fs/cgroup/user/memory.max": "max\n"}, quota{}},
		"version 2, the parent is tighter": {map[string]string{"proc/self/cgroup": "0::/slurm/job_1/step\n",
			"sys/fs/cgroup/slurm/job_1/step/cpu.max": "400000 100000\n", "sys/fs/cgroup/slurm/job_1/cpu.max": "150000 100000\n",
			"sys/fs/cgroup/slurm/job_1/memory.max": "2000\n", "sys/fs/cgroup/slurm/job_1/memory.current": "1500\n", "sys/fs/cgroup/slurm/job_1/memory.stat": "anon 400\ninactive_file 1000\n",
			"sys/fs/cgroup/slurm/job_1/step/memory.max": "3000\n"},
			quota{cpus: 1.5, cpusFrom: "/sys/fs/cgroup/slurm/job_1/cpu.max", memory: 2000, used: 500, memoryFrom: "/sys/fs/cgroup/slurm/job_1/memory.max"}},
		"version 2 in a container that sees the host's path": {map[string]string{"proc/self/cgroup": "0::/../../system.slice/docker-1.scope\n",
			"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/memory.max": "4096\n", "sys/fs/cgroup/memory.current": "96\n"},
			quota{cpus: 0.5, cpusFrom: "/sys/fs/cgroup/cpu.max", memory: 4096, used: 96, memoryFrom: "/sys/fs/cgroup/memory.max"}},
		"version 1": {map[string]string{"proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/a\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "300\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"},
			quota{cpus: 3, cpusFrom: "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", memory: 1000, used: 300, memoryFrom: "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"}},
		"garbled": {map[string]string{"proc/self/cgroup": "nonsense\n0::/x\n", "sys/fs/cgroup/x/cpu.max": "abc def\n", "sys/fs/cgroup/x/memory.max": "\n"}, quota{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, readQuota(groups(t, c.files)), cmp.AllowUnexported(quota{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := processors(quota{cpus: 0.5}); got != 1 {
		t.Errorf("half a processor is %d", got)
	}
}

// The tools below are fakes: scripts that print what the documentation of the real ones shows. No vendor's tool has run.
const (
	fakeNvidia = "#!/bin/sh\n# fake\necho '0, NVIDIA H200, 143771, 143000, 570.86'\necho '1, NVIDIA A100-SXM4-80GB, [N/A], 100, 570.86'\n"
	fakeROCm   = `#!/bin/sh
# fake
echo 'WARNING: AMD GPU device(s) is/are in a low-power state.'
echo '{"card1": {"VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "1048576", "Card Series": "AMD Instinct MI210", "Card SKU": "D67301"},' \
     '"card0": {"VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "0", "Card series": "AMD Instinct MI210"}, "system": {"Driver version": "6.2.4"}}'
`
	fakeHygon = "#!/bin/sh\n# fake\necho '{\"card0\": {\"vram Total Memory (MiB)\": \"65520\", \"vram Total Used Memory (MiB)\": \"20\", \"Card series\": \"K100_AI\"}, \"system\": {\"Driver Version\": \"6.3.8\"}}'\n"
	fakeFails = "#!/bin/sh\n# fake\necho 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'\nexit 9\n"
)

func TestGPUsOfFakedTools(t *testing.T) {
	nvidia := []jobs.GPU{{Index: 0, Name: "NVIDIA H200", MemoryTotalMB: 143771, MemoryFreeMB: 143000, Driver: "570.86"}, {Index: 1, Name: "NVIDIA A100-SXM4-80GB", MemoryFreeMB: 100, Driver: "570.86"}}
	amd := []jobs.GPU{{Index: 0, Name: "AMD Instinct MI210", MemoryTotalMB: 65520, MemoryFreeMB: 65520, Driver: "6.2.4"}, {Index: 1, Name: "AMD Instinct MI210", MemoryTotalMB: 65520, MemoryFreeMB: 65519, Driver: "6.2.4"}}
	cases := map[string]struct {
		tools    map[string]string
		environ  []string
		want     []jobs.GPU
		evidence string
		failed   string
	}{
		"no tool":             {want: []jobs.GPU{}, evidence: "no GPU is known"},
		"nvidia-smi":          {tools: map[string]string{"nvidia-smi": fakeNvidia}, want: nvidia, evidence: "2 devices"},
		"rocm-smi":            {tools: map[string]string{"rocm-smi": fakeROCm}, want: amd, evidence: "2 devices"},
		"hy-smi":              {tools: map[string]string{"hy-smi": fakeHygon}, want: []jobs.GPU{{Name: "K100_AI", MemoryTotalMB: 65520, MemoryFreeMB: 65500, Driver: "6.3.8"}}, evidence: "1 devices"},
		"the driver is gone":  {tools: map[string]string{"nvidia-smi": fakeFails}, want: []jobs.GPU{}, evidence: "could not communicate", failed: "could not communicate"},
		"one fails, one does": {tools: map[string]string{"nvidia-smi": fakeFails, "rocm-smi": fakeROCm}, want: amd, evidence: "could not communicate"},
		"no answer":           {tools: map[string]string{"rocm-smi": "#!/bin/sh\n# fake\n"}, want: []jobs.GPU{}, evidence: "0 devices"},
		"no JSON":             {tools: map[string]string{"hy-smi": "#!/bin/sh\n# fake\necho Usage: hy-smi\n"}, want: []jobs.GPU{}, evidence: "can't be read", failed: "hy-smi can't be read"},
		"no CSV":              {tools: map[string]string{"nvidia-smi": "#!/bin/sh\n# fake\necho one,two\n"}, want: []jobs.GPU{}, evidence: "can't be read", failed: "nvidia-smi can't be read"},
		"one is hidden":       {tools: map[string]string{"nvidia-smi": fakeNvidia}, environ: []string{"CUDA_VISIBLE_DEVICES=1"}, want: nvidia[1:], evidence: "the job sees \"1\" of 2"},
		"all are hidden":      {tools: map[string]string{"nvidia-smi": fakeNvidia}, environ: []string{"CUDA_VISIBLE_DEVICES="}, want: []jobs.GPU{}, evidence: "the job sees"},
		"cut at a wrong one":  {tools: map[string]string{"nvidia-smi": fakeNvidia}, environ: []string{"CUDA_VISIBLE_DEVICES=0,7,1"}, want: nvidia[:1], evidence: "the job sees"},
		"hidden by name":      {tools: map[string]string{"nvidia-smi": fakeNvidia}, environ: []string{"CUDA_VISIBLE_DEVICES=GPU-8932f937"}, want: nvidia, evidence: "not resolved"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for tool, text := range c.tools {
				script(t, filepath.Join(dir, tool), text)
			}
			list, said, err := gpus(context.Background(), append([]string{"PATH=" + dir}, c.environ...))
			if diff := cmp.Diff(c.want, list); diff != "" {
				t.Error(diff)
			}
			var text strings.Builder
			for _, e := range said {
				text.WriteString(e.From + ": " + e.Says + "\n")
			}
			if !strings.Contains(text.String(), c.evidence) || (err == nil) != (c.failed == "") || err != nil && !strings.Contains(err.Error(), c.failed) {
				t.Errorf("evidence %sfailed %v", text.String(), err)
			}
		})
	}
}

func TestSurveySaysWhatItRestsOn(t *testing.T) {
	dir := t.TempDir()
	own := fakePython(t, filepath.Join(dir, ".venv/bin/python"))
	script(t, filepath.Join(dir, "broken/bin/python"), "#!/bin/sh\nexit 3\n")
	r := New(Options{Host: "here", Workspace: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "VIRTUAL_ENV=" + filepath.Join(dir, "broken")}})
	survey, _, err := r.Survey(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(survey.Evidence) < 4 || len(survey.Environments) < 2 {
		t.Fatalf("%+v", survey)
	}
	for _, e := range survey.Evidence {
		if e.From == "" || e.Says == "" || e.At.IsZero() {
			t.Errorf("evidence %+v", e)
		}
	}
	first, second := survey.Environments[0], survey.Environments[1]
	if !first.Chosen || first.Path != own || first.Problem != "" || second.Problem == "" || second.Chosen || survey.Pythons[0].Path != own {
		t.Errorf("environments %+v", survey.Environments)
	}
}

func TestThePlacesOfAProjectsPython(t *testing.T) {
	cases := map[string]struct {
		files   map[string]string // made below the project; "python" is an interpreter
		environ []string          // %HOME% is the home folder, below which miniforge3 is
		why     string
		finding string
	}{
		"venv":                     {files: map[string]string{"venv/bin/python": "python"}, why: "the project's venv"},
		"uv":                       {files: map[string]string{".venv/bin/python": "python", ".venv/pyvenv.cfg": "home = /usr/bin\nuv = 0.9.1\n", "uv.lock": ""}, why: "the project's .venv, made by uv"},
		"uv, not made":             {files: map[string]string{"uv.lock": ""}, why: "python3 on PATH", finding: "environment_not_built"},
		"pixi":                     {files: map[string]string{".pixi/envs/default/bin/python": "python", "pixi.toml": ""}, why: "the project's pixi environment, default"},
		"pixi, not made":           {files: map[string]string{"pixi.toml": ""}, why: "python3 on PATH", finding: "environment_not_built"},
		"conda inside":             {files: map[string]string{"env/bin/python": "python", "env/conda-meta/history": ""}, why: "the project's conda environment, env"},
		"an env that is no conda":  {files: map[string]string{"env/bin/python": "python"}, why: "python3 on PATH"},
		"conda by name":            {files: map[string]string{"environment.yml": "# c\nname: climate # ours\ndependencies: []\n", "../home/miniforge3/envs/climate/bin/python": "python"}, why: "the conda environment climate that the project's environment.yml names"},
		"conda by name, elsewhere": {files: map[string]string{"environment.yaml": "name: \"climate\"\n", "../opt/envs/climate/bin/python": "python"}, environ: []string{"CONDA_EXE=%TOP%/opt/bin/conda"}, why: "the conda environment climate that the project's environment.yaml names"},
		"conda, not made":          {files: map[string]string{"environment.yml": "name: climate\n"}, why: "python3 on PATH", finding: "environment_not_built"},
		"a name that leads away":   {files: map[string]string{"environment.yml": "name: ../../etc\n"}, why: "python3 on PATH", finding: "environment_not_built"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			project := filepath.Join(top, "project")
			script(t, filepath.Join(project, "train.py"), "")
			for file, text := range c.files {
				file = filepath.Join(project, filepath.FromSlash(file))
				if text == "python" {
					fakePython(t, file)
				} else {
					script(t, file, text)
				}
			}
			environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home")}
			for _, pair := range c.environ {
				environ = append(environ, strings.ReplaceAll(pair, "%TOP%", top))
			}
			python, findings, err := New(Options{Environ: environ}).ChoosePython(context.Background(), project, "")
			if err != nil || python.Why != c.why || strings.Join(codes(findings), " ") != c.finding {
				t.Errorf("%v: %+v, findings %v", err, python, findings)
			}
		})
	}
}

func TestMemoryKillsOfControlGroups(t *testing.T) {
	for name, c := range map[string]struct {
		files       map[string]string
		file, after string // the file that must be watched, and what it holds afterwards
		want        string
	}{
		"none": {files: map[string]string{}},
		"version 2": {files: map[string]string{"proc/self/cgroup": "0::/slurm/job_1\n", "sys/fs/cgroup/slurm/job_1/memory.events": "low 0\noom 1\noom_kill 1\noom_group_kill 0\n",
			"sys/fs/cgroup/memory.events": "oom_kill 40\n"}, file: "sys/fs/cgroup/slurm/job_1/memory.events", after: "oom 2\noom_kill 2\n", want: "oom_kill rose from 1 to 2"},
		"version 2, no kill": {files: map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom_kill 1\n"},
			file: "sys/fs/cgroup/a/memory.events", after: "oom_kill 1\n"},
		"a container that sees the host's path": {files: map[string]string{"proc/self/cgroup": "0::/../../docker-1.scope\n", "sys/fs/cgroup/memory.events": "oom_kill 0\n"},
			file: "sys/fs/cgroup/memory.events", after: "oom_kill 3\n", want: "oom_kill rose from 0 to 3"},
		"version 1": {files: map[string]string{"proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"},
			file: "sys/fs/cgroup/memory/a/memory.oom_control", after: "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", want: "oom_kill rose from 0 to 1"},
		"version 1 without the count": {files: map[string]string{"proc/self/cgroup": "5:memory:/a\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\n"},
			file: "sys/fs/cgroup/memory/a/memory.oom_control", after: "oom_kill 9\n"},
		"garbled": {files: map[string]string{"proc/self/cgroup": "nonsense\n0::/x\n", "sys/fs/cgroup/x/memory.events": "oom_kill many\n"},
			file: "sys/fs/cgroup/x/memory.events", after: "oom_kill -1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := groups(t, c.files)
			watched := watchMemoryKills(root, "")
			want := c.want
			if c.file != "" {
				path := filepath.Join(root, c.file)
				if err := os.WriteFile(path, []byte(c.after), 0o644); err != nil {
					t.Fatal(err)
				}
				if want != "" {
					want = path + ": " + want
				}
			}
			if got := watched.rose(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
