//! Vocabularies: enough of each language that its text is told apart from the others'.

use std::sync::LazyLock;

use encoding_rs::{EUC_JP, Encoding, SHIFT_JIS, UTF_8, WINDOWS_1252};

use super::draw::Draw;

/// A language with its everyday words.
#[derive(Debug)]
pub(super) struct Language {
    /// For the `lang` attribute.
    pub(super) code: &'static str,
    words: LazyLock<Vec<&'static str>>,
    between: &'static str,
    stop: &'static str,
}

impl Language {
    /// Appends one sentence of six to sixteen words.
    pub(super) fn sentence(&self, draw: &mut Draw, out: &mut String) {
        let count = draw.between(6, 16);
        self.words_into(draw, count, out);
        out.push_str(self.stop);
    }

    /// A few words without an end, for titles and link texts.
    pub(super) fn phrase(&self, draw: &mut Draw, count: usize) -> String {
        let mut out = String::new();
        self.words_into(draw, count, &mut out);
        out
    }

    fn words_into(&self, draw: &mut Draw, count: usize, out: &mut String) {
        for nth in 0..count {
            let word = draw.pick(&self.words);
            if nth > 0 {
                out.push_str(self.between);
                out.push_str(word);
            } else {
                let mut letters = word.chars();
                out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                out.push_str(letters.as_str());
            }
        }
    }
}

/// The language and the encoding of a host: mostly English and UTF-8, as on the web.
pub(super) fn voice(host: u16) -> (&'static Language, &'static Encoding) {
    match host % 16 {
        2 => (&GERMAN, UTF_8),
        10 => (&GERMAN, WINDOWS_1252),
        4 => (&FRENCH, UTF_8),
        11 => (&FRENCH, WINDOWS_1252),
        6 => (&SPANISH, UTF_8),
        5 => (&JAPANESE, SHIFT_JIS),
        13 => (&JAPANESE, EUC_JP),
        8 => (&JAPANESE, UTF_8),
        14 => (&HINDI, UTF_8),
        _ => (&ENGLISH, UTF_8),
    }
}

fn split(words: &'static str) -> Vec<&'static str> {
    words.split_whitespace().collect()
}

/// Words for paths: ASCII, so that a URL needs no escaping.
pub(super) const SLUGS: &[&str] = &[
    "river", "garden", "market", "letter", "window", "harvest", "journey", "evening", "museum",
    "kitchen", "mountain", "library", "weather", "station", "village", "orchard", "bridge",
    "lantern", "history", "festival",
];

/// The first part of a path.
pub(super) const SECTIONS: &[&str] = &["news", "guides", "people", "places", "archive", "notes"];

static ENGLISH: Language = Language {
    code: "en",
    words: LazyLock::new(|| {
        split(
            "the a of and to in that was with for from on by garden river house guest morning \
             evening people village market story letter water bread table window journey winter \
             summer children teacher music bridge forest old quiet small bright early often \
             always never between found wrote opened walked remembered carried asked waited their \
             which when where through",
        )
    }),
    between: " ",
    stop: ". ",
};

static GERMAN: Language = Language {
    code: "de",
    words: LazyLock::new(|| {
        split(
            "der die das und nicht mit auf für ein eine von über Gäste Häuser Straße Brücke \
             Morgen Abend Dorf Markt Brief Wasser Brot Fenster Reise Winter Sommer Kinder \
             Lehrerin Musik Wald Küche Garten alt ruhig klein schön früh manchmal immer zwischen \
             gefunden schrieb öffnete ging erinnerte trug fragte wartete ihre welche wenn durch \
             während größer weiß",
        )
    }),
    between: " ",
    stop: ". ",
};

static FRENCH: Language = Language {
    code: "fr",
    words: LazyLock::new(|| {
        split(
            "le la les des et dans que pour avec sur une par invité maison rivière matin soirée \
             village marché lettre eau pain fenêtre voyage hiver été enfants maîtresse musique \
             pont forêt cuisine jardin vieux tranquille petit beau tôt souvent toujours jamais \
             entre trouvé écrit ouvert marché porté demandé attendu leurs où à déjà très français \
             cœur",
        )
    }),
    between: " ",
    stop: ". ",
};

static SPANISH: Language = Language {
    code: "es",
    words: LazyLock::new(|| {
        split(
            "el la los de y en que para con sobre una por huésped casa río mañana tarde pueblo \
             mercado carta agua pan ventana viaje invierno verano niños maestra música puente \
             bosque cocina jardín viejo tranquilo pequeño hermoso temprano siempre nunca entre \
             encontró escribió abrió caminó llevó preguntó esperó sus cuando donde también \
             después año",
        )
    }),
    between: " ",
    stop: ". ",
};

static JAPANESE: Language = Language {
    code: "ja",
    words: LazyLock::new(|| {
        split(
            "は の を に が と で から まで です ます した 客 家 川 朝 夕方 村 市場 手紙 水 パン 窓 旅 冬 夏 子供 先生 音楽 橋 森 台所 庭 古い \
             静かな 小さい 美しい 早い いつも 見つけた 書いた 開けた 歩いた 運んだ 待った これ それ とても そして しかし 東京 図書館 天気 駅",
        )
    }),
    between: "",
    stop: "。",
};

static HINDI: Language = Language {
    code: "hi",
    words: LazyLock::new(|| {
        split(
            "का की के में और से पर को है था थी मेहमान घर नदी सुबह शाम गाँव बाज़ार चिट्ठी पानी \
             रोटी खिड़की यात्रा सर्दी गर्मी बच्चे अध्यापक संगीत पुल जंगल रसोई बगीचा पुराना शांत \
             छोटा सुंदर जल्दी हमेशा कभी बीच मिला लिखा खोला चला याद पूछा रुका उनके जब जहाँ बहुत \
             लेकिन दिल्ली",
        )
    }),
    between: " ",
    stop: "। ",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_voice_can_be_written_in_its_encoding() {
        for host in 0..16 {
            let (language, encoding) = voice(host);
            let mut text = String::new();
            let mut draw = Draw::of(&[u64::from(host)]);
            for _ in 0..200 {
                language.sentence(&mut draw, &mut text);
            }
            let (_, _, replaced) = encoding.encode(&text);
            assert!(!replaced, "{} in {}", language.code, encoding.name());
        }
    }
}
