"""A search for good options: Optuna proposes them, Penstock trains, and validation scores decide.

Run it in any folder, after `pip install optuna`: it writes `plants/`, and a run per trial to `runs/search/`.
"""

import shutil
from typing import Any

import numpy as np
import optuna

import penstock as ps

NUM_TRIALS = 3


def make_plants() -> ps.Dataset:
    """Write a table of plants: does one bloom?"""
    draws = np.random.default_rng(0)
    height, light = draws.normal(10, 3, 400), draws.uniform(0, 1, 400)
    kind = draws.choice(["rose", "lily", "iris"], 400)
    blooms = height / 10 + 2 * light + (kind == "lily") + draws.normal(0, 0.3, 400) > 2.4
    table = {"height": height, "light": light, "kind": kind.tolist(), "blooms": blooms.astype(int).tolist()}
    return ps.convert(table, "plants", target="blooms", overwrite=True)


def propose(trial: optuna.Trial) -> dict[str, Any]:
    """Return options of `ps.train` that a trial tries."""
    model = ps.options.ModelOptions(
        preset="small",
        dropout=trial.suggest_float("dropout", 0.0, 0.3),
        units=(trial.suggest_categorical("units", [16, 32, 64]),),
    )
    return {
        "model_options": model,
        "learning_rate": trial.suggest_float("learning_rate", 5e-4, 2e-2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-4, 1e-1, log=True),
    }


def train(trial: optuna.Trial, plants: ps.Dataset) -> float:
    """Train with the options of a trial; return the validation loss of the best epoch."""
    folder = f"runs/search/trial-{trial.number}"
    run = ps.train(plants, out=folder, epochs=4, seed=0, **propose(trial))
    trial.set_user_attr("run", folder)
    return min(row["val_data_loss"] for row in run.history)


def main() -> optuna.Study:
    """Search, then look at the test split once, with the best run."""
    plants = make_plants()
    shutil.rmtree("runs/search", ignore_errors=True)  # the runs of an earlier search
    # The sampler has a seed, and so has each run: the same search finds the same options.
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(lambda trial: train(trial, plants), n_trials=NUM_TRIALS)
    print(f"validation loss {study.best_value:.4f} with {study.best_params}")
    print(ps.evaluate(study.best_trial.user_attrs["run"], importance=False, mistakes=0))
    return study


if __name__ == "__main__":
    main()
