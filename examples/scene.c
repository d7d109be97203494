/*
 * scene.c - tags in C, with the header alone: nothing is linked.
 *
 *     cc -o scene scene.c && tally run -- ./scene && tally report scene.*.tally
 *
 * Run without Tally, the tags do nothing and cost next to nothing. Under `tally run` each block below is billed to the
 * path of tags that were active when it was allocated, wherever it is freed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/tally.h>

struct mesh {
    float *points;
    char *name;
};

static void load_mesh(struct mesh *mesh, int number) {
    TALLY_TAG_FUNC(); /* the function's name: load_mesh */
    mesh->points = calloc(3000, sizeof *mesh->points);
    mesh->name = malloc(24);
    snprintf(mesh->name, 24, "mesh %d", number);
}

static char *load_texture(const char *file) {
    TALLY_TAG("Textures");
    TALLY_TAG_COPY(file); /* a name that is made at run time; the buffer may change afterwards */
    char *pixels = malloc(64 * 64 * 4);
    if (pixels) memset(pixels, 128, 64 * 64 * 4);
    return pixels;
}

int main(void) {
    enum { MESHES = 10, TEXTURES = 3 };
    struct mesh meshes[MESHES];
    char *textures[TEXTURES];
    {
        TALLY_TAG("Scene"); /* until the end of this block, however it is left */
        for (int i = 0; i < MESHES; i++)
            load_mesh(&meshes[i], i);
        for (int i = 0; i < TEXTURES; i++) {
            char file[16];
            snprintf(file, sizeof file, "wood%d.png", i);
            textures[i] = load_texture(file);
        }
        TALLY_PAUSE_THREAD(); /* from here to the end of the block: matched when freed, but in no report */
        void *scratch = malloc(1 << 20);
        free(scratch);
    }

    /* Blocks go back to where they were billed, whatever tag is active now. */
    TALLY_TAG("Cleaning up");
    for (int i = 1; i < MESHES; i++) {
        free(meshes[i].points);
        free(meshes[i].name);
    }
    free(textures[0]);

    /* One mesh (12,000 + 24 bytes) and two textures (16,384 bytes each) are still there: */
    printf("tracked bytes: %llu\n", (unsigned long long)(tally_active() ? tally_bytes() : 0));
    fflush(stdout);
    free(meshes[0].points);
    free(meshes[0].name);
    for (int i = 1; i < TEXTURES; i++)
        free(textures[i]);
    return 0;
}
