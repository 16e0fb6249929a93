/* Looks symbols up in loaded objects by their own hash tables.
 *
 * This library exports dlsym and dlvsym, so it cannot ask for libc's by name: glibc 2.34 took
 * __libc_dlsym away, and before it dlsym was in libdl.so.2. The list of loaded objects and the ELF
 * hash tables are a stable interface on every glibc.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "driver/elf_symbols.h"
#include "session/session.h"

struct object {
    ElfW(Addr) base;
    const char *strings;
    const ElfW(Sym) * symbols;
    const uint32_t *gnu_hash, *hash;
    const char *soname;
};

static bool equal(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        ;
    return *a == *b;
}

static bool read_dynamic(const ElfW(Dyn) * dynamic, struct object *object)
{
    ElfW(Addr) soname = 0;
    bool named = false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        /* glibc has relocated these pointers, except in read-only objects such as the vDSO. */
        ElfW(Addr) at = dynamic->d_un.d_ptr;
        if (at < object->base)
            at += object->base;
        switch (dynamic->d_tag) {
        case DT_STRTAB: object->strings = (const char *)at; break;
        case DT_SYMTAB: object->symbols = (const void *)at; break;
        case DT_GNU_HASH: object->gnu_hash = (const void *)at; break;
        case DT_HASH: object->hash = (const void *)at; break;
        case DT_SONAME:
            soname = dynamic->d_un.d_val;
            named = true;
            break;
        default: break;
        }
    }
    if (!object->strings || !object->symbols)
        return false;
    object->soname = named ? object->strings + soname : "";
    return true;
}

static void *symbol_at(const struct object *object, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        !equal(object->strings + symbol->st_name, name))
        return NULL;
    return (void *)(object->base + symbol->st_value);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        h = h * 33 + *c;
    return h;
}

static void *by_gnu_hash(const struct object *object, const char *name, uint32_t h)
{
    const uint32_t *table = object->gnu_hash;
    uint32_t buckets = table[0], first = table[1], bloom = table[2];
    const uint32_t *bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / 4),
                   *chain = bucket + buckets;
    uint32_t index = buckets ? bucket[h % buckets] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (h | 1)) {
            void *found = symbol_at(object, index, name);
            if (found)
                return found;
        }
        if (entry & 1)
            return NULL;
    }
}

static void *by_hash(const struct object *object, const char *name)
{
    uint32_t count = object->hash[1];
    for (uint32_t index = 1; index < count; index++) {
        void *found = symbol_at(object, index, name);
        if (found)
            return found;
    }
    return NULL;
}

static void *in_object(const struct object *object, const char *name)
{
    return object->gnu_hash ? by_gnu_hash(object, name, gnu_hash_of(name))
           : object->hash   ? by_hash(object, name)
                            : NULL;
}

/* The list that debuggers read, from the program's own headers: no lock, so also for a child forked
 * while another thread held the linker's. What was there at the start of the program stays where it
 * is. */
static const struct link_map *objects(void)
{
    const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR);
    unsigned long count = getauxval(AT_PHNUM);
    ElfW(Addr) base = 0;
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned long i = 0; header && i < count; i++)
        if (header[i].p_type == PT_PHDR)
            base = (ElfW(Addr))header - header[i].p_vaddr;
    for (unsigned long i = 0; header && i < count; i++)
        if (header[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + header[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
            return ((const struct r_debug *)dynamic->d_un.d_ptr)->r_map;
    return NULL;
}

void *vg_first_symbol(const char *soname, const char *name)
{
    const struct link_map *map = objects();
    for (const struct link_map *each = map; each; each = each->l_next) {
        struct object object = {.base = each->l_addr};
        if (each->l_ld && read_dynamic(each->l_ld, &object) && equal(object.soname, soname)) {
            void *found = in_object(&object, name);
            if (found)
                return found;
        }
    }
    return map ? NULL : vg_loaded_symbol(soname, name); /* a program without that header */
}

static bool open_object(const struct dl_phdr_info *info, struct object *object)
{
    *object = (struct object){.base = info->dlpi_addr};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return dynamic && read_dynamic(dynamic, object);
}

struct wanted {
    const char *soname, *name;
    void *found;
};

static int find_symbol(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct wanted *wanted = data;
    struct object object;
    if (!open_object(info, &object) || !equal(object.soname, wanted->soname))
        return 0;
    wanted->found = in_object(&object, wanted->name);
    return wanted->found != NULL;
}

void *vg_loaded_symbol(const char *soname, const char *name)
{
    struct wanted wanted = {soname, name, NULL};
    dl_iterate_phdr(find_symbol, &wanted);
    return wanted.found;
}

static bool is_driver(const struct object *object)
{
    return equal(object->soname, "libcuda.so.1") || equal(object->soname, "libnvidia-ml.so.1");
}

bool vg_object_symbols(void *handle, int count, const char *const *names, const uint32_t *hashes,
                       void **found)
{
    /* what a handle of glibc is */
    const struct link_map *map = handle;
    struct object object = {.base = map->l_addr};
    if (!map->l_ld || !read_dynamic(map->l_ld, &object) || !object.gnu_hash)
        return false;
    for (int i = 0; i < count; i++)
        __atomic_store_n(&found[i], by_gnu_hash(&object, names[i], hashes[i]), __ATOMIC_RELAXED);
    return true;
}

struct place {
    uintptr_t address, from, to;
    bool driver;
};

static int find_place(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct place *place = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || place->address < from ||
            place->address >= from + segment->p_memsz)
            continue;
        struct object object;
        place->from = from;
        place->to = from + segment->p_memsz;
        place->driver = open_object(info, &object) && is_driver(&object);
        return 1;
    }
    return 0;
}

/* In another namespace (dlmopen), which the list above does not have. Our hooks act on this
 * namespace's driver, so a program that keeps another one apart works only where there are no
 * limits. */
static bool in_driver_elsewhere(const void *address)
{
    static int (*dladdr1_)(const void *, Dl_info *, void **, int);
    if (!vg_folder())
        return false;
    if (!dladdr1_) {
        void *found = vg_loaded_symbol("libc.so.6", "dladdr1");
        __atomic_store_n((void **)&dladdr1_,
                         found ? found : vg_loaded_symbol("libdl.so.2", "dladdr1"),
                         __ATOMIC_RELAXED);
    }
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1_ || !dladdr1_(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    struct object object = {.base = map->l_addr};
    return map->l_ld && read_dynamic(map->l_ld, &object) && is_driver(&object);
}

bool vg_in_driver(const void *address)
{
    /* An application asks for hundreds of names of the same library. Only a yes is kept: should the
     * driver be unloaded and another library take its place, a stale yes hands out a hook too
     * many. */
    static __thread __attribute__((tls_model("initial-exec"))) struct place yes;
    struct place place = {.address = (uintptr_t)address};
    if (place.address >= yes.from && place.address < yes.to)
        return true;
    if (!dl_iterate_phdr(find_place, &place))
        return in_driver_elsewhere(address);
    if (place.driver)
        yes = place;
    return place.driver;
}
