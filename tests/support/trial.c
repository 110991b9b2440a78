/* trial.c: main of the tests of bodies. */
#include "emit/c/host/hal_h.h"
#include "recipe/recipe.h"

#include <stdio.h>

extern const char *const trial_folder_name;
extern const bool trial_is_emulated;
const oi_recipe_folder *trial_folder(void);
int trial_all(void);

const oi_recipe_folder *trial_folder(void)
{
    const oi_recipe_folder *f = oi_recipe_folders;
    while (f->name && strcmp(f->name, trial_folder_name) != 0)
        f++;
    return f;
}

/* 77: this machine cannot run them. */
int main(void)
{
    char names[256] = "";
    if (!trial_folder()->name)
        return 1;
    if (trial_is_emulated) /* of these */
        strcat(names, "avx2 fma f16c");
    for (int i = 0; i < OI_ISA_COUNT && !trial_is_emulated; i++)
        if (i != OI_ISA_SCALAR && trial_folder()->isa >> i & 1) {
            strcat(names, oi_isa_name((oi_isa)i));
            strcat(names, " ");
        }
    const char *lacks = hal_lacks(names);
    if (lacks)
        printf("not run: %s\n", lacks);
    return lacks ? 77 : trial_all();
}
