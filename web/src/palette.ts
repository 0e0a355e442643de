// Made by tools/gen_palette.py of python/uflip/report/figures/palette.py.
export const CAUSES = ["#3b7fb8", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#7fc4ee", "#b8a800", "#7a5ea8", "#8a8d93", "#9c6b4e", "#1f3552", "#d8b98a", "#7d1f3c", "#4f7942", "#ff4fa0", "#3a3f00", "#00d0c8", "#6b00b3"] as const;
