"""Options for building a model.

Annotations are read when a class is used, so this module has no postponed ones.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from penstock.errors import NoSuchPathError
from penstock.settings.kinds import (
    Integer,
    Made,
    MadePath,
    NotNegative,
    Number,
    UnexpectedError,
    advise_nearest,
)
from penstock.settings.setting import Settings, setting

BACKBONES: Final = (
    *(f"ConvNeXt{size}" for size in ("Tiny", "Small", "Base", "Large", "XLarge")),
    *(f"DenseNet{depth}" for depth in (121, 169, 201)),
    *(f"EfficientNetB{number}" for number in range(8)),
    *(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L")),
    *("InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Large", "MobileNetV3Small"),
    *("NASNetLarge", "NASNetMobile", "Xception"),
    *(f"ResNet{depth}" for depth in (50, 101, 152)),
    *(f"ResNet{depth}V2" for depth in (50, 101, 152)),
    *("VGG16", "VGG19"),
)
"""Models of `keras.applications`."""
_CONVOLUTIONS: Final = ("resnet", "cnn")
_LARGEST: Final = 1 << 20


def _check_units(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise UnexpectedError("one integer per dense layer, and at least one layer")
    side = Integer(least=1, most=_LARGEST)
    for number, each in enumerate(value):
        try:
            side.check(each)
        except UnexpectedError as error:
            error.path = f"[{number}]"
            raise
    return tuple(map(side.check, value))


def _check_encoder(value: Any) -> str:
    if not isinstance(value, str) or value not in (*_CONVOLUTIONS, *BACKBONES):
        advice = advise_nearest(value, (*_CONVOLUTIONS, *BACKBONES)) or "MobileNetV2 is a good first choice."
        raise UnexpectedError("'resnet', 'cnn' or the name of a model of keras.applications", advice)
    return value


def _check_weights_file(value: Any) -> Any:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value).endswith(".h5"):
        advice = "Weights are not downloaded: get the file for include_top=False, and pass its path."
        raise UnexpectedError("the path of an .h5 file", advice)
    return value


Units = Annotated[tuple[int, ...], Made("N,N", _check_units, dump=list)]
Size = Annotated[int, Integer(least=1, most=_LARGEST)]
Rate = Annotated[float, Number(most=1, below=True)]
Encoder = Annotated[str, Made("NAME", _check_encoder)]
WeightsFile = Annotated[str | os.PathLike[str], MadePath("FILE", _check_weights_file, dump=os.fspath)]


class ModelOptions(Settings, title="model", has_flags=False):
    """Options for building a model. The preset gives the values of options that are None.

    Example:
        >>> ModelOptions(preset="small", text="gru").text
        'gru'
    """

    preset: Literal["small", "base"] = setting(
        "Size of the model. small is for a quick try, base for use.", default="base", flag="--preset"
    )
    numbers: Literal["bins", "ramps"] = setting(
        "Encoder of single numbers. bins learns a piecewise linear function of each number, with the bins of "
        "its `Scale`; ramps learns the places where its slope changes, as models of earlier versions did.",
        default="bins",
    )
    members: Size | None = setting(
        "Number of members of the ensemble that the dense layers after the inputs are. Members share these "
        "layers, and each has its own scale of the layers' inputs and its own output layer. The prediction "
        "is their mean. 1 for no ensemble.",
        default=None,
    )
    part_outputs: bool = setting(
        "Whether each text, sequence, image and array has an output layer of its own beside those of the "
        "members. Only training uses it: an encoder then learns from the target itself, and not only from "
        "what the other inputs leave unexplained. Needs an ensemble and a second input.",
        default=True,
    )
    text: Literal["ngrams", "pool", "gru", "conv", "transformer"] = setting(
        "Encoder of texts. pool is the mean of the token embeddings; ngrams adds to it a linear function of "
        "words and pairs of words, directly to the outputs, as in logistic regression; gru and conv use the "
        "order of tokens; transformer uses attention, and needs more records than the others.",
        default="ngrams",
        flag="--text-encoder",
    )
    pair_weight: NotNegative = setting(
        "Weight of a pair of words of ngrams, where the weight of a word is 1 + 0.5·log(1 + rank).",
        default=3.5,
    )
    pairs_per_word: Size = setting(
        "Number of rows that all pairs share, by a hash, for each word of the vocabulary.", default=32
    )
    sequence: Literal["pool", "gru", "conv", "transformer"] = setting(
        "Encoder of sequences. conv uses the order and processes all steps at once; a gru processes them one "
        "by one, several times slower on CPUs.",
        default="conv",
        flag="--sequence-encoder",
    )
    image: Encoder = setting(
        "Encoder of images: resnet, cnn, or a model of keras.applications, such as MobileNetV2. resnet is a "
        "small residual network that adapts to the image size; cnn is the network of earlier versions, "
        "without residual blocks.",
        default="resnet",
        flag="--image-encoder",
    )
    array: Literal["resnet", "cnn"] = setting(
        "Encoder of arrays of two and more dimensions.", default="resnet"
    )
    share_images: bool = setting(
        "Whether images of the same shape share one encoder, which learns from all of them.", default=True
    )
    image_dropout: Rate = setting(
        "Share of the outputs of a residual network that dropout sets to 0 during training.", default=0.2
    )
    image_weights: WeightsFile | None = setting(
        "Weights of the image encoder, without its top layers: fine-tuned after the other layers. Nothing is "
        "downloaded.",
        default=None,
        usual="trained from scratch",
        flag="--image-weights",
    )
    freeze_image: bool | None = setting(
        "Keep those weights fixed instead.", default=None, flag="--freeze-image"
    )
    fine_tune: bool | None = setting(
        "Whether to train in two stages: first all other layers, with the image encoder fixed, "
        "then all weights at a twentieth of the learning rate. Batch normalization of the encoder keeps its "
        "statistics in both.",
        default=None,
        usual="True with image_weights and without freeze_image",
    )
    units: Units | None = setting(
        "Number of units of each dense layer after the inputs are combined.", default=None
    )
    width: Size | None = setting(
        "Size of the vector of each text, sequence, image and row, and of all numbers together.", default=None
    )
    token_width: Annotated[int, Integer(least=2, most=_LARGEST)] | None = setting(
        "Size of the embeddings of tokens and ids. A transformer needs a multiple of 4.", default=None
    )
    max_category_width: Size = setting(
        "Maximum size of the embeddings of categories; with fewer categories it is smaller.", default=32
    )
    filters: Size | None = setting(
        "Number of filters of the first stage of a residual network, or the first convolution of a cnn. Each "
        "further one has twice as many. Images of less than 24 × 24 have a third of them in a residual "
        "network.",
        default=None,
    )
    num_blocks: Size | None = setting("Number of transformer blocks.", default=None)
    dropout: Rate | None = setting(
        "Dropout rate. It is the share of the units that are set to 0 during training.",
        default=None,
        usual="0.1",
        flag="--dropout",
    )
    l2: NotNegative = setting(
        "L2 penalty on weights. It applies to dense, convolutional and recurrent layers; the optimizer "
        "already has weight decay.",
        default=0.0,
        usual="0",
        flag="--l2",
    )
    num_ids: Size = setting(
        "Number of embedding rows for whole numbers in sequences without a vocabulary. Smaller numbers have "
        "one row each, greater ones share rows. 4096 is inexpensive, and enough for hours, counts and small "
        "ids.",
        default=4096,
    )

    def validate(self) -> None:
        """Refuse sizes that a transformer cannot have, and weights that the image encoder cannot use."""
        is_attentive = "transformer" in (self.text, self.sequence)
        if self.token_width is not None and self.token_width % 4 and is_attentive:
            raise self.refuse("token_width", "a multiple of 4 for a transformer, whose four heads share it")
        if self.fine_tune and (self.image_weights is None or self.freeze_image):
            got = "no weights" if self.image_weights is None else "fixed weights"
            advice = "Leave one out: `fine_tune=True` or `freeze_image=True`."
            if self.image_weights is None:
                advice = "Pass `image_weights='FILE.h5'`, or leave it out."
            raise self.refuse("fine_tune", "pretrained weights that are not fixed", got, advice)
        for name in ("image_weights", "freeze_image"):
            if getattr(self, name) and self.image not in BACKBONES:
                expected = f"no value for image {self.image!r}, which has no pretrained weights"
                advice = "Use a model that has some, such as `ModelOptions(image='MobileNetV2')`."
                raise self.refuse(name, expected, advice=advice)
        if self.image_weights is not None and not Path(self.image_weights).is_file():
            raise NoSuchPathError(
                "image_weights",
                path=self.image_weights,
                field="image_weights",
                expected="a file",
                got="no file",
            )
