package digest

// cuePhrases are the words by which a digest knows what a sentence is about,
// in lower case, separated by "|". A "^" stands before what counts only at the
// start of a sentence. A language that isn't here still has its names, numbers
// and addresses, and its users still come first.
var cuePhrases = []struct {
	cue     cueSet
	phrases string
}{
	// English
	{cueCorrection, "^no,|^no.|^no -|^no –|^nope|^wait,|^wait -|actually|correction|i meant|i mean|that's wrong|that is wrong|that's not right|that is not right|not correct|incorrect|instead of|instead|rather than|scratch that|i was wrong|my mistake|i misspoke|changed my mind|change of plan|should be|should have been|no longer|not anymore|forget what|ignore what i said|you misunderstood|you got that wrong|is outdated"},
	{cueDecision, "always|never|from now on|we decided|i decided|decided|we agreed|agreed|let's go with|we'll go with|i'll go with|go with|going with|we'll use|let's use|i'll take|stick with|settle on|settled on|i prefer|we prefer|prefer|preferred|preference|remember that|please remember|keep in mind|note that|important|must|must not|mustn't|under no circumstances|at all times|requirement|required|the budget|budget is|the deadline|deadline is|deadline|allergic|only use|do not ever|by default"},
	{cueWish, "i want|we want|i need|we need|i'd like|i would like|we'd like|please|make sure|ensure|i like|i love|my goal|our goal|the goal|goal is|can you|could you|help me|favorite|favourite|use|keep"},
	// German
	{cueCorrection, "^nein|^doch|^halt,|^moment,|eigentlich|korrektur|ich meinte|ich meine|das stimmt nicht|stimmt nicht|das ist falsch|falsch|sondern|stattdessen|anstatt|statt|mein fehler|habe mich geirrt|anders entschieden|nicht mehr|sollte sein|muss heißen"},
	{cueDecision, "immer|niemals|nie|ab jetzt|ab sofort|von nun an|entschieden|beschlossen|vereinbart|wir nehmen|ich nehme|wir bleiben bei|ich bevorzuge|bevorzugt|lieber|am liebsten|merk dir|denk daran|wichtig|muss|müssen|darf nicht|auf keinen fall|unbedingt|das budget|die frist|frist|allergisch|grundsätzlich"},
	{cueWish, "ich will|ich möchte|wir möchten|ich brauche|wir brauchen|bitte|achte darauf|kannst du|können sie|hilf mir|ich mag|unser ziel|mein ziel|das ziel"},
	// French
	{cueCorrection, "^non|en fait|correction|je voulais dire|ce n'est pas ça|c'est faux|c'est incorrect|plutôt que|au lieu de|j'ai changé d'avis|mon erreur|je me suis trompé|ne plus|n'est plus"},
	{cueDecision, "toujours|jamais|désormais|dorénavant|à partir de maintenant|on a décidé|nous avons décidé|j'ai décidé|décidé|convenu|je préfère|nous préférons|préfère|nous y tenons|j'y tiens|retiens|rappelle-toi|n'oublie pas|important|il faut|doit|ne doit pas|obligatoire|le budget|la date limite|allergique"},
	{cueWish, "je veux|je voudrais|nous voulons|j'ai besoin|s'il te plaît|s'il vous plaît|peux-tu|pouvez-vous|aide-moi|j'aime|mon objectif|notre objectif"},
	// Spanish
	{cueCorrection, "^no,|^no.|en realidad|corrección|quise decir|quería decir|me equivoqué|está mal|es incorrecto|no es correcto|en vez de|en lugar de|sino|más bien|cambié de opinión|mejor dicho|ya no"},
	{cueDecision, "siempre|nunca|a partir de ahora|de ahora en adelante|decidimos|decidí|decidido|acordamos|acordado|prefiero|preferimos|prefiere|recuerda|ten en cuenta|importante|debe|no debe|obligatorio|el presupuesto|la fecha límite|alérgico|alérgica"},
	{cueWish, "quiero|queremos|quisiera|me gustaría|necesito|necesitamos|por favor|asegúrate|puedes|ayúdame|me gusta|mi objetivo|nuestro objetivo"},
	// Portuguese
	{cueCorrection, "^não|na verdade|correção|eu quis dizer|está errado|incorreto|em vez de|ao invés de|mudei de ideia|me enganei|não é mais|melhor dizendo"},
	{cueDecision, "sempre|nunca|a partir de agora|de agora em diante|decidimos|decidi|combinamos|prefiro|preferimos|lembre-se|lembra|importante|deve|não deve|obrigatório|o orçamento|o prazo|alérgico|alérgica"},
	{cueWish, "eu quero|quero|queremos|gostaria|preciso|precisamos|por favor|certifique-se|você pode|me ajude|eu gosto"},
	// Italian
	{cueCorrection, "^no,|^no.|in realtà|correzione|intendevo|volevo dire|è sbagliato|non è corretto|invece di|invece|piuttosto che|ho cambiato idea|mi sono sbagliato|non più"},
	{cueDecision, "sempre|mai|d'ora in poi|abbiamo deciso|ho deciso|deciso|concordato|preferisco|preferiamo|ricorda|tieni presente|importante|deve|non deve|obbligatorio|il budget|la scadenza|allergico|allergica"},
	{cueWish, "voglio|vogliamo|vorrei|ho bisogno|per favore|assicurati|puoi|aiutami|mi piace"},
	// Dutch, Polish, Turkish, Indonesian, Vietnamese
	{cueCorrection, "^nee|eigenlijk|ik bedoel|ik bedoelde|dat klopt niet|in plaats van|toch niet|^nie,|właściwie|chodziło mi|to nieprawda|zamiast|pomyliłem|^hayır|aslında|demek istediğim|yanlış|yerine|düzeltme|^bukan|^tidak,|sebenarnya|maksud saya|salah|alih-alih|^không|thực ra|ý tôi là|sai rồi|không phải|thay vì"},
	{cueDecision, "altijd|nooit|vanaf nu|besloten|afgesproken|liever|onthoud|belangrijk|moet|mag niet|zawsze|nigdy|od teraz|zdecydowaliśmy|postanowiłem|wolę|pamiętaj|ważne|musi|nie może|her zaman|asla|bundan sonra|karar verdik|tercih ederim|tercih|unutma|önemli|gerekli|selalu|jangan pernah|mulai sekarang|memutuskan|lebih suka|ingat|penting|harus|luôn luôn|luôn|không bao giờ|từ bây giờ|quyết định|tôi thích|nhớ rằng|quan trọng|phải"},
	{cueWish, "ik wil|ik zou graag|ik heb nodig|alsjeblieft|chcę|chciałbym|potrzebuję|proszę|istiyorum|ihtiyacım var|lütfen|saya ingin|saya mau|saya butuh|tolong|tôi muốn|tôi cần|làm ơn|xin hãy|hãy"},
	// Russian, Ukrainian, Greek
	{cueCorrection, "^нет|на самом деле|я имел в виду|я имела в виду|это неправильно|неверно|неправильно|исправление|вместо|точнее|передумал|передумала|ошибся|ошиблась|больше не|^ні|насправді|я мав на увазі|замість|^όχι|στην πραγματικότητα|εννοούσα|αντί"},
	{cueDecision, "всегда|никогда|отныне|с этого момента|теперь всегда|решили|решил|решила|договорились|предпочитаю|предпочитаем|запомни|помни|важно|нужно обязательно|обязательно|должен|должна|должно|нельзя|бюджет|срок|дедлайн|аллергия|завжди|ніколи|відтепер|вирішили|πάντα|ποτέ|αποφασίσαμε|προτιμώ|σημαντικό|πρέπει"},
	{cueWish, "я хочу|хочу|хотим|хотелось бы|мне нужно|нужно|нам нужно|пожалуйста|убедись|можешь|помоги|мне нравится|будь ласка|мені потрібно|θέλω|θα ήθελα|χρειάζομαι|παρακαλώ"},
	// Arabic, Persian, Hebrew
	{cueCorrection, "^لا،|^لا,|^لا |في الواقع|أقصد|قصدت|هذا خطأ|خطأ|غير صحيح|بدلا من|بدلاً من|تصحيح|غيرت رأيي|^نه|در واقع|منظورم|اشتباه|به جای|به\u200cجای|^לא|בעצם|התכוונתי|טעות|במקום|תיקון"},
	{cueDecision, "دائما|دائمًا|أبدا|أبدًا|من الآن فصاعدا|قررنا|قررت|اتفقنا|أفضل|تذكر|مهم|يجب|لا يجوز|الميزانية|الموعد النهائي|حساسية|همیشه|هرگز|از این به بعد|تصمیم گرفتیم|ترجیح|یادت باشد|باید|نباید|תמיד|לעולם לא|מעכשיו|החלטנו|החלטתי|מעדיף|מעדיפה|זכור|חשוב|חייב|אסור"},
	{cueWish, "أريد|نريد|أحتاج|من فضلك|رجاء|تأكد|أحب|می\u200cخواهم|میخواهم|لطفا|لطفاً|نیاز دارم|אני רוצה|אני צריך|אני צריכה|בבקשה"},
	// Hindi, Bengali, Thai
	{cueCorrection, "^नहीं|असल में|दरअसल|मेरा मतलब|गलत|के बजाय|की जगह|सुधार|^না|আসলে|ভুল|বদলে|^ไม่ใช่|จริงๆ แล้ว|จริงๆแล้ว|หมายถึง|ผิด|แทนที่จะ|แก้ไข|เปลี่ยนใจ"},
	{cueDecision, "हमेशा|कभी नहीं|अब से|तय किया|फैसला|पसंद|याद रखें|याद रखना|महत्वपूर्ण|ज़रूरी|चाहिए|बजट|সবসময়|কখনো|সিদ্ধান্ত|পছন্দ|মনে রাখ|ตลอดเวลา|เสมอ|ห้าม|ไม่เคย|ตั้งแต่นี้|ตัดสินใจ|ตกลง|ชอบ|จำไว้|สำคัญ|ต้อง|งบประมาณ|แพ้"},
	{cueWish, "मुझे चाहिए|मैं चाहता|मैं चाहती|कृपया|আমি চাই|দয়া করে|อยาก|ต้องการ|กรุณา|ช่วย|ขอ"},
	// Chinese, Japanese, Korean
	{cueCorrection, "^不，|^不,|^不对|^不是|不对|不對|其实|其實|更正|纠正|我的意思是|我是说|我是說|错了|錯了|搞错|而不是|不是这|改成|改为|改為|改用|换成|換成|太贵|太貴|应该是|應該是|改主意|不再|^いや|^いいえ|^違|違います|違う|実は|訂正|つまり|ではなく|じゃなくて|の代わりに|間違|変更して|^아니|사실은|사실 |정정|제 말은|틀렸|잘못|대신|말고|바꿔"},
	{cueDecision, "总是|總是|永远|永遠|从不|從不|绝不|絕不|从现在|從現在|今后|以后都|决定|決定|商定|说好|更喜欢|偏好|记住|記住|重要|必须|必須|不能|不要|务必|預算|预算|截止|过敏|過敏|いつも|常に|絶対|決して|に限り|に限る|今後|これから|決め|決まり|好き|好み|覚えて|重要|必ず|しないで|べき|予算|締め切り|締切|アレルギー|항상|절대|앞으로|결정|정했|합의|선호|좋아|기억해|중요|반드시|해야|하지 마|예산|마감|알레르기"},
	{cueWish, "我想|我要|我喜欢|我喜歡|我们要|我需要|我希望|请|請|帮我|幫我|确保|目标|目標|したい|欲しい|ほしい|ください|お願い|必要|てほしい|하고 싶|원해|원합|필요|해 주세요|해주세요|부탁|주세요"},
	// Bans and dislikes, in the languages above
	{cueBan, "^no |no more|don't|do not|avoid|i hate|i dislike|hates|can't stand|cannot stand|can't eat|don't like|doesn't like"},
	{cueBan, "^kein|^keine|^keinen|bitte kein|bitte keine|bitte keinen|bitte nicht|vermeide|vermeiden|hasse|hasst|mag kein|mag keine|mag nicht|nicht ausstehen"},
	{cueBan, "^pas de|^pas d'|surtout pas|interdit|interdite|interdits|hors de question|^aucun|^aucune|évite|évitez|éviter|déteste|je n'aime pas|n'aime pas|ne supporte pas|^nada de|^sin|evita|evite|evitar|no uses|no quiero|no queremos|odio|odia|no me gusta|no soporto|no soporta|não use|não quero|não queremos|odeio|odeia|não gosto|não suporto|não suporta|^niente|^senza|non usare|non voglio|non vogliamo|non mi piace|non sopporto|non sopporta"},
	{cueBan, "^geen|vermijd|haat|hou niet van|houd niet van|niet graag|^bez|unikaj|nie lubię|nie lubi|nienawidzę|nienawidzi|nie znoszę|nie znosi|nie chcę|kaçın|olmasın|kullanma|istemiyorum|sevmiyorum|nefret|^jangan|hindari|tidak suka|tidak mau|benci|đừng|tránh|không thích|không muốn|ghét"},
	{cueBan, "^только не|^никаких|^никакой|^никакого|^без|избегай|избегайте|не надо|не хочу|не люблю|не любит|ненавижу|ненавидит|терпеть не|не выношу|не выносит|^ніяких|^ніякого|уникай|не треба|ненавиджу|ненавидить|^χωρίς|απόφυγε|μισώ|μισεί|δεν θέλω|δεν μου αρέσει"},
	{cueBan, "تجنب|ممنوع|لا تستخدم|لا أريد|لا نريد|لا أحب|لا تحب|لا يحب|لا أطيق|لا تطيق|لا يطيق|أكره|نباشد|نکن|ممنوع|متنفر|دوست ندار|نمی\u200cخواهم|אל ת|הימנע|שונא|לא אוהב|לא רוצה|לא סובל"},
	{cueBan, "मत |नहीं चाहिए|पसंद नहीं|नफरत|बर्दाश्त नहीं|দেবেন না|করবেন না|করো না|চাই না|পছন্দ করি না|ঘৃণা|อย่า|หลีกเลี่ยง|ไม่ชอบ|ไม่เอา|ไม่อยาก|เกลียด"},
	{cueBan, "禁止|^别|请别|請別|千万别|千萬別|别放|别用|别吃|别加|别买|别忘|别再|别做|别把|别让|别给|别动|别去|别碰|别删|别改|别发|別放|別用|別吃|別加|別買|別忘|別再|別做|別把|別讓|別給|別動|別去|別碰|別刪|別改|別發|避免|不想|不吃|不喜欢|不喜歡|讨厌|討厭|受不了|避けて|使わないで|やめて|ないで|抜きで|なしで|嫌い|苦手|하지 말|쓰지 마|넣지 마|빼 주|빼주|피해 주|금지|싫어|싫다"},
	// Orders not to touch what is there
	{cueBan, "ändere nichts|ändern sie nichts|nichts ändern|ändere nicht|lösche nichts|lösche nicht|nichts löschen|nicht löschen|rühr nicht|fass nicht|nicht anfassen|ne touche|ne touchez|ne change|ne changez|ne modifie|ne modifiez|ne supprime|ne supprimez|n'efface|n'effacez|n'utilise pas|n'utilisez pas|n'envoie|n'envoyez|no toques|no toquen|no cambies|no cambie|no modifiques|no borres|no borre|no elimines|no envíes|não mexa|não altere|não mude|não apague|não envie|non toccare|non cambiare|non modificare|non cancellare|non eliminare|non inviare"},
	{cueBan, "не трогай|не трогайте|не трогать|не меняй|не меняйте|не менять|не удаляй|не удаляйте|не удалять|не очищай|не очищайте|не очищать|не отправляй|не отправляйте|не используй|не используйте|не перезапускай|не чіпай|не чіпати|не змінюй|не видаляй|لا تحذف|لا تغير|لا تعدل|لا تلمس|لا ترسل|لا تمسح|لا تضف"},
	// What the user agrees to under a condition
	{cueDecision, "^yes, but|^yes but|^ok, but|^okay, but|^ja, aber|^ja aber|^oui, mais|^oui mais|^sí, pero|^sí pero|^sim, mas|^sim mas|^sì, ma|^ja, maar|^tak, ale|^evet, ama|^ya, tapi|^да, но|^да но|^так, але|^ναι, αλλά|^نعم، لكن|^نعم، ولكن|^نعم لكن|^بله، اما|^כן, אבל|^हाँ, लेकिन|^可以，但|^好，但|^行，但|^好的，但|^はい、でも|^はい、ただ|^네, 하지만"},
	// Turns of phrase that have such words and decide nothing
	{cueIdle, "never mind|nevermind|don't worry|do not worry|don't mind|don't know|do not know|don't think|do not think|don't understand|^no problem|^no worries|^no thanks|^no thank you|^no idea|^no need|^no doubt|not important|no matter|we will see|we'll see|i see"},
	{cueIdle, "nicht wichtig|nicht so wichtig|unwichtig|mal sehen|macht nichts|^keine ahnung|^kein problem|^keine sorge|^keine ursache|pas important|pas grave|peu importe|on verra|^pas de problème|^pas de souci|no es importante|no importa|no pasa nada|ya veremos|^sin problema|não é importante|não importa|vamos ver|não se preocupe|non è importante|non importa|non fa niente|^niente di|vedremo"},
	{cueIdle, "niet belangrijk|niet erg|laat maar|^geen probleem|^geen idee|nie jest ważne|nieważne|nie szkodzi|zobaczymy|önemli değil|boş ver|fark etmez|tidak penting|tidak apa|lupakan saja|không quan trọng|không sao|thôi kệ|не важно|неважно|не страшно|посмотрим|^без проблем|не важливо|неважливо|побачимо|δεν είναι σημαντικό|δεν πειράζει|θα δούμε"},
	{cueIdle, "غير مهم|ليس مهما|لا يهم|لا بأس|مهم نیست|بی\u200cخیال|לא חשוב|לא משנה|אין בעיה|נראה|कोई बात नहीं|देखेंगे|ज़रूरी नहीं|ব্যাপার না|দেখা যাক|ไม่สำคัญ|ไม่เป็นไร|ไม่ต้องห่วง"},
	{cueIdle, "不要紧|不要緊|不重要|没关系|沒關係|无所谓|無所謂|别担心|別擔心|不客气|気にしないで|心配しないで|重要ではない|重要ではありません|신경 쓰지 마|걱정하지 마|걱정 마|중요하지 않|괜찮"},
	// Greetings
	{cueIdle | cueGreets, "^hello|^hi there|good morning|good evening|good night|how are you|how's it going|nice to meet you|see you|goodbye|guten morgen|guten abend|guten tag|gute nacht|wie geht es|wie geht's|auf wiedersehen|bis bald|bonjour|bonsoir|bonne nuit|comment allez-vous|comment ça va|à bientôt|buenos días|buenas tardes|buenas noches|cómo estás|qué tal|hasta luego|bom dia|boa tarde|boa noite|tudo bem|buongiorno|buonasera|come stai|goedemorgen|dzień dobry|günaydın|selamat pagi|xin chào"},
	{cueIdle | cueGreets, "доброе утро|добрый день|добрый вечер|здравствуйте|как дела|до свидания|добрий день|καλημέρα|صباح الخير|مساء الخير|السلام عليكم|كيف حالك|صبح بخیر|בוקר טוב|ערב טוב|नमस्ते|สวัสดี|你好|您好|早上好|晚上好|再见|再見|おはよう|こんにちは|こんばんは|안녕하세요"},
	// Words that ask
	{cueAsks, "^what|^who|^whom|^whose|^where|^when|^why|^how|^which|^was|^wer|^wen|^wem|^wo|^wann|^warum|^wie|^welche|^welcher|^welches|^wieviel|^quel|^quelle|^quels|^quelles|^qui|^que|^où|^quand|^pourquoi|^comment|^combien|^qué|^quién|^quiénes|^dónde|^cuándo|^cómo|^cuál|^cuáles|^cuánto|^cuántos|^cuánta|^cuántas|^onde|^quando|^como|^qual|^quanto|^dove|^perché|^chi|^che|^wat|^wie|^waar|^hoe|^kto|^co|^gdzie|^kiedy|^dlaczego|^ne zaman|^nerede|^neden|^nasıl|^apa|^siapa|^di mana|^kapan|^mengapa"},
	{cueAsks, "^что|^чем|^кто|^где|^когда|^почему|^как|^какой|^какая|^какие|^сколько|^що|^хто|^де|^коли|^чому|^τι|^ποιος|^πού|^πότε|^γιατί|^πώς|^من |^ما |^ماذا|^أين|^متى|^لماذا|^كيف|^كم |^چه|^کجا|^چرا|^מה|^מי|^איפה|^מתי|^למה|^क्या|^कहाँ|^कब|^क्यों|什么|什麼|哪|谁|誰|为什么|何時|何が|どこ|いつ|なぜ|무엇|어디|언제|왜"},
	// Somebody tells of himself
	{cueSelf, "i|i'm|i've|i'd|my|we|we're|we've|our|mine|ich|mein|meine|meinen|meinem|meiner|wir|unser|unsere|je|j'ai|j'|mon|ma|mes|nous|notre|yo|mi|mis|nosotros|nuestro|nuestra|eu|meu|minha|nós|nosso|nossa|io|mio|mia|noi|nostro|nostra|ik|mijn|wij|we|ons|onze|ja|mój|moja|moje|my|nasz|ben|benim|biz|bizim|saya|aku|kami|tôi|chúng tôi|я|мне|меня|мой|моя|мои|мою|мы|нас|наш|наша|ми|мій|εγώ|μου|μας|أنا|نحن|من|ما|אני|שלי|אנחנו|मैं|मेरा|मेरी|मेरे|हम|আমি|আমার|ผม|ฉัน|เรา|我|我们|我們|私|僕|俺|我々|나는|내가|저는|제가|우리|제 "},
	// When something was or will be
	{cueTime, "yesterday|today|tonight|tomorrow|ago|last|next|since|week|weeks|weekend|month|months|year|years|recently|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december"},
	{cueTime, "gestern|heute|morgen|vorgestern|übermorgen|seit|woche|wochen|monat|monate|jahr|jahre|letzte|letzten|letztes|nächste|nächsten|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|januar|februar|märz|mai|juni|juli|oktober|dezember|hier|aujourd'hui|demain|semaine|mois|année|dernier|dernière|prochain|prochaine|depuis|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"},
	{cueTime, "ayer|hoy|mañana|semana|mes|meses|año|años|pasado|pasada|próximo|próxima|desde|hace|lunes|martes|miércoles|jueves|viernes|sábado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|ontem|hoje|amanhã|mês|ano|anos|passada|passado|segunda-feira|ieri|oggi|domani|settimana|mese|anno|anni|scorso|scorsa|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|gisteren|vandaag|maandag|vrijdag|wczoraj|dzisiaj|jutro|tydzień|dün|bugün|yarın|hafta|kemarin|besok|minggu|hôm qua|hôm nay|ngày mai|tuần"},
	{cueTime, "вчера|сегодня|завтра|неделю|неделе|неделя|месяц|месяце|год|году|лет|понедельник|вторник|среду|четверг|пятницу|субботу|воскресенье|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря|вчора|сьогодні|χθες|σήμερα|αύριο|أمس|اليوم|غدا|كانون|شباط|آذار|نيسان|أيار|حزيران|تموز|أيلول|تشرين|يناير|فبراير|أبريل|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر|أسبوع|دیروز|امروز|فردا|אתמול|היום|מחר|שבוע|कल|आज|सप्ताह|গতকাল|আজ|เมื่อวาน|วันนี้|พรุ่งนี้|สัปดาห์|昨天|今天|明天|上周|上週|下周|下週|去年|明年|昨日|今日|明日|先週|来週|先月|来月|月曜|火曜|水曜|木曜|金曜|土曜|日曜|어제|오늘|내일|지난|다음 주|요일"},
}
