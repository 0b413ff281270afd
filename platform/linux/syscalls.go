package linux

// numbers are those of one system call on each architecture that a filter may meet; none where it does not exist there.
type numbers struct{ amd64, arm64, i386, arm int }

const none = -1

// everywhere is the number of a call that is newer than the common numbering (Linux 5.1).
func everywhere(number int) numbers { return numbers{number, number, number, number} }

// syscallNumbers has every call that a rule names. A test compares it with golang.org/x/sys/unix, whose own constants are only those of
// the architecture it is built for. "umount" and "socketcall" are left from the first years of i386.
var syscallNumbers = map[string]numbers{
	"acct":              {163, 89, 51, 51},
	"add_key":           {248, 217, 286, 309},
	"bpf":               {321, 280, 357, 386},
	"clone":             {56, 220, 120, 120},
	"clone3":            everywhere(435),
	"delete_module":     {176, 106, 129, 129},
	"finit_module":      {313, 273, 350, 379},
	"fsconfig":          everywhere(431),
	"fsmount":           everywhere(432),
	"fsopen":            everywhere(430),
	"fspick":            everywhere(433),
	"init_module":       {175, 105, 128, 128},
	"io_uring_enter":    everywhere(426),
	"io_uring_register": everywhere(427),
	"io_uring_setup":    everywhere(425),
	"ioctl":             {16, 29, 54, 54},
	"ioperm":            {173, none, 101, none},
	"iopl":              {172, none, 110, none},
	"kexec_file_load":   {320, 294, none, 401},
	"kexec_load":        {246, 104, 283, 347},
	"keyctl":            {250, 219, 288, 311},
	"lookup_dcookie":    {212, 18, 253, 249},
	"mount":             {165, 40, 21, 21},
	"mount_setattr":     everywhere(442),
	"move_mount":        everywhere(429),
	"open_by_handle_at": {304, 265, 342, 371},
	"open_tree":         everywhere(428),
	"open_tree_attr":    everywhere(467),
	"perf_event_open":   {298, 241, 336, 364},
	"pidfd_getfd":       everywhere(438),
	"pivot_root":        {155, 41, 217, 218},
	"process_vm_readv":  {310, 270, 347, 376},
	"process_vm_writev": {311, 271, 348, 377},
	"quotactl":          {179, 60, 131, 131},
	"quotactl_fd":       everywhere(443),
	"reboot":            {169, 142, 88, 88},
	"request_key":       {249, 218, 287, 310},
	"setns":             {308, 268, 346, 375},
	"socket":            {41, 198, 359, 281},
	"socketcall":        {none, none, 102, none},
	"socketpair":        {53, 199, 360, 288},
	"swapoff":           {168, 225, 115, 115},
	"swapon":            {167, 224, 87, 87},
	"umount":            {none, none, 22, none},
	"umount2":           {166, 39, 52, 52},
	"unshare":           {272, 97, 310, 337},
	"userfaultfd":       {323, 282, 374, 388},
}
