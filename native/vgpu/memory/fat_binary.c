/* Fat binaries: which of the images in one the driver takes for a GPU.
 *
 * Entries follow one another, each a header and an image: a cubin for one compute capability, which
 * runs on later ones of the same major number, or PTX, which is compiled for later ones of all. The
 * driver takes the nearest cubin, else the nearest PTX. NVIDIA does not publish the layout; what is
 * not as expected here leaves the choice open, and the whole is charged. */
#include <string.h>

#include "memory/memory.h"

enum kind { PTX = 1, CUBIN = 2 };

struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t arch; /* 90 for compute capability 9.0 */
    uint32_t name_at, name_bytes;
    uint64_t flags, reserved;
    uint64_t unpacked_bytes;
};
_Static_assert(sizeof(struct entry) == 64, "as in the file");

static bool suits(const struct entry *entry, uint32_t arch)
{
    if (entry->arch > arch)
        return false;
    return entry->kind == PTX || (entry->kind == CUBIN && entry->arch / 10 == arch / 10);
}

/* A cubin before all PTX, and of each the nearest. */
static bool is_better(const struct entry *one, const struct entry *other)
{
    return one->kind != other->kind ? one->kind == CUBIN : one->arch > other->arch;
}

bool vg_fat_binary_choice(const char *body, uint64_t bytes, uint32_t arch,
                          struct vg_image_choice *choice)
{
    struct entry best = {0}, entry;
    uint64_t at = 0;
    while (bytes - at >= sizeof entry) {
        memcpy(&entry, body + at, sizeof entry);
        if ((entry.kind != PTX && entry.kind != CUBIN) || entry.header_bytes < sizeof entry ||
            entry.header_bytes > bytes - at || entry.bytes > bytes - at - entry.header_bytes)
            break; /* padding, or nothing that we know */
        if (suits(&entry, arch) && (!best.kind || is_better(&entry, &best))) {
            best = entry;
            *choice = (struct vg_image_choice){
                .image = body + at + entry.header_bytes,
                .bytes = entry.bytes,
                .unpacked = entry.compressed_bytes ? entry.unpacked_bytes : 0,
                .is_packed = entry.compressed_bytes != 0,
            };
        }
        at += entry.header_bytes + entry.bytes;
    }
    return best.kind != 0;
}
