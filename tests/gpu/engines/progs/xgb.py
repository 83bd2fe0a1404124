"""XGBoost trains histogram trees on the GPU, boosting round by round, and predicts; a step is a round."""
import numpy
import xgboost
import trial

trial.begin()
rng = numpy.random.default_rng(7)
x = rng.standard_normal((20000, 32), dtype=numpy.float32)
y = (x[:, 0] * x[:, 1] + numpy.sin(x[:, 2]) + 0.1 * rng.standard_normal(20000)).astype('float32')
data = xgboost.DMatrix(x, label=y)
booster = xgboost.Booster({'device': 'cpu' if trial.CPU else 'cuda', 'tree_method': 'hist', 'max_depth': 6, 'eta': 0.1, 'objective': 'reg:squarederror', 'seed': 0,
                           'nthread': 4}, [data])


def step(i, h):
    booster.update(data, i)


def final(h):
    global sums
    found = booster.predict(data)
    h.add([numpy.asarray(found), bytes(booster.save_raw('ubj'))])
    sums = [float(abs(found).astype('float64').sum())]


trial.run(step, 300, warmup=5, sync=lambda: None, final=final, extra=lambda: {'check': sums, 'version': xgboost.__version__})
