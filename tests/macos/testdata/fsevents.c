// fsevents DIR NAME: succeeds if FSEvents names the file NAME below DIR within ten
// seconds.
#include <CoreServices/CoreServices.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *wanted;

static void changed(ConstFSEventStreamRef stream, void *info, size_t count, void *paths,
                    const FSEventStreamEventFlags flags[], const FSEventStreamEventId ids[]) {
	(void)stream, (void)info, (void)flags, (void)ids;
	for (size_t i = 0; i < count; i++) {
		const char *path = ((char **)paths)[i];
		printf("%s\n", path);
		if (strstr(path, wanted) != NULL) exit(0);
	}
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	wanted = argv[2];
	CFStringRef dir = CFStringCreateWithCString(NULL, argv[1], kCFStringEncodingUTF8);
	CFArrayRef dirs = CFArrayCreate(NULL, (const void **)&dir, 1, &kCFTypeArrayCallBacks);
	FSEventStreamRef stream = FSEventStreamCreate(NULL, changed, NULL, dirs, kFSEventStreamEventIdSinceNow, 0.1,
	                                              kFSEventStreamCreateFlagFileEvents);
	if (stream == NULL) return 1;
	FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
	if (!FSEventStreamStart(stream)) return 1;
	CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false);
	return 1;
}
