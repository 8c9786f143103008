BEGIN TRANSACTION;
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path NOT NULL, lang TEXT NOT NULL, source, reading TEXT, format TEXT,
  sha256 TEXT, encoding TEXT, segments INTEGER, reason TEXT, detail TEXT, run TEXT,
  UNIQUE (path, lang)
);
INSERT INTO "file" VALUES(1,'config.yaml','de','','72e2d6a551dc37d929dc6f6bb3e7718a','yaml','17f8cdcfae88c64ba6c390cce61b3b831dcfd997611fd616feee63ffd89e4dec','utf-8',3,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(2,'guide.md','','','fb1854ab5bcbc1bdc6e052cbbafa5666','markdown','8b439be6819c0f3fe547380c0fe0ac81977460bba4fa34948124ae8b26411784','utf-8',9,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(3,'config.yaml','pl','','6d4217acc9cf18bd963cb6721682090c','yaml','17f8cdcfae88c64ba6c390cce61b3b831dcfd997611fd616feee63ffd89e4dec','utf-8',3,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(4,'movie.srt','','','0093f38dce7a8a9825fa2862a06eec3f','srt','da0483ded370241941772c6c5147e568ab854746aa9a292832e21e859843d429','utf-8',2,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(5,'notes.txt','','','4726ce4c8722a7bc841dfec54c9332d2','txt','0f4b662c238ae0ecb543a5a1dea3ad6995af2f98168f28242c0109148ad4ce0e','utf-8',2,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(6,'page.html','','','93a49734730c18731c887c6e38dcd420','html','0fd0eaf7249ab6b9265f9df86330a5f887906d15f046dac36bbda33fdf252e6e','ascii',3,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(7,'sub/messages.po','de','','96029525ed7d8a436e0ebd54c0f3dab5','po','4b9fe4be7368ca2ff10bfcd0fddceb54fc9b089794a7bd6383c6cd22e1ee19ac','utf-8',3,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(8,'sub/values.json','de','','ab68923fe795729c01937d2dcfb7748f','json','57b13230a9567ca2309cef0338d6c43e7423c20ea12f2c8bd16c0d18eb1f9d1d','utf-8',2,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(9,'sub/values.json','pl','','43b2fb940d2a010eb574049727bb3bd7','json','57b13230a9567ca2309cef0338d6c43e7423c20ea12f2c8bd16c0d18eb1f9d1d','utf-8',2,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(10,'table.csv','de','','f7ab7edd152ab93c3549f7fb0d0b4a64','csv','c88558eff550aa4c3c3b6c156cad4df24dd489c0459cc1e14e60a7055a0d2813','utf-8',4,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(11,'sub/messages.po','pl','','4729e54685f544b2676516c906d188ee','po','4b9fe4be7368ca2ff10bfcd0fddceb54fc9b089794a7bd6383c6cd22e1ee19ac','utf-8',4,NULL,NULL,'a707940e');
INSERT INTO "file" VALUES(12,'table.csv','pl','','ab69753ea713afa70f06311821985a89','csv','c88558eff550aa4c3c3b6c156cad4df24dd489c0459cc1e14e60a7055a0d2813','utf-8',4,NULL,NULL,'a707940e');
CREATE TABLE issue (
  file INTEGER NOT NULL, target INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT,
  code TEXT NOT NULL, detail TEXT
);
CREATE TABLE job (
  id TEXT PRIMARY KEY, target INTEGER NOT NULL, document TEXT NOT NULL, number INTEGER NOT NULL,
  segments TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO "job" VALUES('a707940e-de-1.0',1,'a707940e-de-1',0,'[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]',1);
INSERT INTO "job" VALUES('a707940e-pl-1.0',2,'a707940e-pl-1',0,'[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23]',1);
CREATE TABLE occurrence (
  file INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, segment INTEGER,
  glue TEXT, place TEXT NOT NULL, PRIMARY KEY (file, number, part)
) WITHOUT ROWID;
INSERT INTO "occurrence" VALUES(1,0,0,1,NULL,'title');
INSERT INTO "occurrence" VALUES(1,1,0,2,NULL,'items.0');
INSERT INTO "occurrence" VALUES(1,2,0,3,NULL,'items.1');
INSERT INTO "occurrence" VALUES(2,0,0,1,NULL,'line 2');
INSERT INTO "occurrence" VALUES(2,1,0,8,NULL,'line 4');
INSERT INTO "occurrence" VALUES(2,2,0,9,NULL,'line 6');
INSERT INTO "occurrence" VALUES(2,3,0,2,NULL,'line 8');
INSERT INTO "occurrence" VALUES(2,4,0,10,NULL,'line 9');
INSERT INTO "occurrence" VALUES(2,5,0,11,NULL,'line 11');
INSERT INTO "occurrence" VALUES(2,6,0,12,NULL,'line 11');
INSERT INTO "occurrence" VALUES(2,7,0,13,NULL,'line 13');
INSERT INTO "occurrence" VALUES(2,8,0,14,NULL,'line 13');
INSERT INTO "occurrence" VALUES(3,0,0,1,NULL,'title');
INSERT INTO "occurrence" VALUES(3,1,0,2,NULL,'items.0');
INSERT INTO "occurrence" VALUES(3,2,0,3,NULL,'items.1');
INSERT INTO "occurrence" VALUES(4,0,0,4,NULL,'cue 1');
INSERT INTO "occurrence" VALUES(4,1,0,5,NULL,'cue 2');
INSERT INTO "occurrence" VALUES(5,0,0,6,NULL,'line 1');
INSERT INTO "occurrence" VALUES(5,1,0,7,NULL,'line 3');
INSERT INTO "occurrence" VALUES(6,0,0,15,NULL,'line 2');
INSERT INTO "occurrence" VALUES(6,1,0,16,NULL,'line 3');
INSERT INTO "occurrence" VALUES(6,2,0,2,NULL,'line 3');
INSERT INTO "occurrence" VALUES(7,0,0,18,NULL,'line 5');
INSERT INTO "occurrence" VALUES(7,1,0,19,NULL,'line 8');
INSERT INTO "occurrence" VALUES(7,2,0,20,NULL,'line 8');
INSERT INTO "occurrence" VALUES(8,0,0,1,NULL,'title');
INSERT INTO "occurrence" VALUES(8,1,0,17,NULL,'greeting');
INSERT INTO "occurrence" VALUES(9,0,0,1,NULL,'title');
INSERT INTO "occurrence" VALUES(9,1,0,17,NULL,'greeting');
INSERT INTO "occurrence" VALUES(10,0,0,13,NULL,'line 2, name');
INSERT INTO "occurrence" VALUES(10,1,0,14,NULL,'line 2, text');
INSERT INTO "occurrence" VALUES(10,2,0,21,NULL,'line 3, name');
INSERT INTO "occurrence" VALUES(10,3,0,22,NULL,'line 3, text');
INSERT INTO "occurrence" VALUES(11,0,0,18,NULL,'line 5');
INSERT INTO "occurrence" VALUES(11,1,0,19,NULL,'line 8');
INSERT INTO "occurrence" VALUES(11,2,0,23,NULL,'line 8');
INSERT INTO "occurrence" VALUES(11,3,0,20,NULL,'line 8');
INSERT INTO "occurrence" VALUES(12,0,0,13,NULL,'line 2, name');
INSERT INTO "occurrence" VALUES(12,1,0,14,NULL,'line 2, text');
INSERT INTO "occurrence" VALUES(12,2,0,21,NULL,'line 3, name');
INSERT INTO "occurrence" VALUES(12,3,0,22,NULL,'line 3, text');
CREATE TABLE output (
  file INTEGER NOT NULL, target INTEGER NOT NULL, path NOT NULL, sha256 TEXT, source TEXT,
  status TEXT, reason TEXT, detail TEXT, counts TEXT, run TEXT, PRIMARY KEY (file, target)
) WITHOUT ROWID;
INSERT INTO "output" VALUES(1,1,'out/de/config.yaml','6b0b854f10e483c9a43448c0372560839492d13461fc2ba040ce8af9d626b002','17f8cdcfae88c64ba6c390cce61b3b831dcfd997611fd616feee63ffd89e4dec:72e2d6a551dc37d929dc6f6bb3e7718a:a707940e','done',NULL,NULL,'{"segments": 3, "new": 3, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(2,1,'out/de/guide.md','330a28ad9ef5b8c885738245e70f01f1227e47ecdaf1ae5987c70a56f7d36e43','8b439be6819c0f3fe547380c0fe0ac81977460bba4fa34948124ae8b26411784:fb1854ab5bcbc1bdc6e052cbbafa5666:a707940e','done',NULL,NULL,'{"segments": 9, "new": 9, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(2,2,'out/pl/guide.md','59cb6f34c4995eb315160bffb914d5fab774d8a7975f73ca540883b268637f3d','8b439be6819c0f3fe547380c0fe0ac81977460bba4fa34948124ae8b26411784:fb1854ab5bcbc1bdc6e052cbbafa5666:a707940e','done',NULL,NULL,'{"segments": 9, "new": 9, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(3,2,'out/pl/config.yaml','04d163a96b36c603a3e6a939396b7bd7bc88bfc497cb385b9e9951dfe869c82e','17f8cdcfae88c64ba6c390cce61b3b831dcfd997611fd616feee63ffd89e4dec:6d4217acc9cf18bd963cb6721682090c:a707940e','done',NULL,NULL,'{"segments": 3, "new": 3, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(4,1,'out/de/movie.srt','f74114e86751525112efac021ea6bc80948524fa2824f4e0da92ebe6a8d23ff5','da0483ded370241941772c6c5147e568ab854746aa9a292832e21e859843d429:0093f38dce7a8a9825fa2862a06eec3f:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(4,2,'out/pl/movie.srt','220c019c21d5cff73613772bc7d61aed8308462adcbdbce932279e8c26e1e056','da0483ded370241941772c6c5147e568ab854746aa9a292832e21e859843d429:0093f38dce7a8a9825fa2862a06eec3f:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(5,1,'out/de/notes.txt','39dd6e1145744a6899400c584635f9bbb5d9a85a52f1731a3d116032726afbb5','0f4b662c238ae0ecb543a5a1dea3ad6995af2f98168f28242c0109148ad4ce0e:4726ce4c8722a7bc841dfec54c9332d2:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(5,2,'out/pl/notes.txt','bc4014552062421dfb04ceceaee939ed1a8c5d004f8da54457a599eb31a174ab','0f4b662c238ae0ecb543a5a1dea3ad6995af2f98168f28242c0109148ad4ce0e:4726ce4c8722a7bc841dfec54c9332d2:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(6,1,'out/de/page.html','1a3b34c6fe7f7b1a33bf26c84380bc343eb61145ce82b8adfb9349372e35ac41','0fd0eaf7249ab6b9265f9df86330a5f887906d15f046dac36bbda33fdf252e6e:93a49734730c18731c887c6e38dcd420:a707940e','done',NULL,NULL,'{"segments": 3, "new": 3, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(6,2,'out/pl/page.html','4beaf0124279524d0a663a67c41ef7548e4a9e0734fb73784ab622da607206ef','0fd0eaf7249ab6b9265f9df86330a5f887906d15f046dac36bbda33fdf252e6e:93a49734730c18731c887c6e38dcd420:a707940e','done',NULL,NULL,'{"segments": 3, "new": 3, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(7,1,'out/de/sub/messages.po','dd8c7e5e0a97f99a7260d3262736c5b2249257e249ca5e6e5083c96970f37142','4b9fe4be7368ca2ff10bfcd0fddceb54fc9b089794a7bd6383c6cd22e1ee19ac:96029525ed7d8a436e0ebd54c0f3dab5:a707940e','done',NULL,NULL,'{"segments": 3, "new": 3, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(8,1,'out/de/sub/values.json','8a7cec7fa123b25f2d6c16b28e3604b73f8e2004f40dea8b3ec9de15b17920e6','57b13230a9567ca2309cef0338d6c43e7423c20ea12f2c8bd16c0d18eb1f9d1d:ab68923fe795729c01937d2dcfb7748f:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(9,2,'out/pl/sub/values.json','62e36bc8e8af5b3c94e858b83d1c6309d72df5b331c2f9a0839bd0b09373457d','57b13230a9567ca2309cef0338d6c43e7423c20ea12f2c8bd16c0d18eb1f9d1d:43b2fb940d2a010eb574049727bb3bd7:a707940e','done',NULL,NULL,'{"segments": 2, "new": 2, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(10,1,'out/de/table.csv','07d70f5d82d5b8f624cac3de9bf825782dd177ce1f41aae0b9ffb4c3b2a43490','c88558eff550aa4c3c3b6c156cad4df24dd489c0459cc1e14e60a7055a0d2813:f7ab7edd152ab93c3549f7fb0d0b4a64:a707940e','done',NULL,NULL,'{"segments": 4, "new": 4, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(11,2,'out/pl/sub/messages.po','52a04936b9aa72598a08be927b1059e4deec8490eb901444d1a061df50927df5','4b9fe4be7368ca2ff10bfcd0fddceb54fc9b089794a7bd6383c6cd22e1ee19ac:4729e54685f544b2676516c906d188ee:a707940e','done',NULL,NULL,'{"segments": 4, "new": 4, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
INSERT INTO "output" VALUES(12,2,'out/pl/table.csv','70914d1591590921f40865bb7518c21dfc0b1e0dc7f50052c96f671a3b2a1009','c88558eff550aa4c3c3b6c156cad4df24dd489c0459cc1e14e60a7055a0d2813:ab69753ea713afa70f06311821985a89:a707940e','done',NULL,NULL,'{"segments": 4, "new": 4, "reused": 0, "memory": 0, "edited": 0, "warned": 0, "source": 0, "failed": 0}','a707940e');
CREATE TABLE refresh (target INTEGER NOT NULL, run TEXT NOT NULL, PRIMARY KEY (target, run))
WITHOUT ROWID;
CREATE TABLE run (
  id TEXT PRIMARY KEY, began REAL, segments INTEGER, seconds REAL, options TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "run" VALUES('a707940e',1.7957191965777752399e+09,45,9.25406113001372432336e-01,'{"layout": "folders", "settings": "bc79737ee0469d0728e782bb84050054", "source_lang": null, "on_fail": "source", "reading": {"include": [], "exclude": [], "format": null, "formats": [], "columns": [], "fields": [], "keys": [], "in_place": false, "bilingual": false, "headings": false, "refresh": false, "encoding": null}}');
CREATE TABLE segment (
  id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL, context TEXT,
  max_chars INTEGER
);
INSERT INTO "segment" VALUES(1,X'747909BD546813C03CF0CAF83BE40CC6','A guide',NULL,NULL);
INSERT INTO "segment" VALUES(2,X'C136F3305AF7D2D4FDA638603B873362','First item',NULL,NULL);
INSERT INTO "segment" VALUES(3,X'601D63B7A5E47313FE9DBC2FF912D9EA','Third item',NULL,NULL);
INSERT INTO "segment" VALUES(4,X'AD88D33810194A621CDA84CDF911B356','Good morning,',NULL,NULL);
INSERT INTO "segment" VALUES(5,X'8CDD66937EAAC9D127605A48C7280C3F','everybody.',NULL,NULL);
INSERT INTO "segment" VALUES(6,X'7B984242181DBA6F922B725F661EF89B','A line of text.',NULL,NULL);
INSERT INTO "segment" VALUES(7,X'75DBD13DA906E24765B8A4C921A397AB','Another line.',NULL,NULL);
INSERT INTO "segment" VALUES(8,X'3927DF634EDF3BBDABB02EEE13E25D66','Install',NULL,NULL);
INSERT INTO "segment" VALUES(9,X'B9E559748881C59E717F8B4237A95887','Run the <x1/> command in a <g2>clean</g2> folder, see <g3>the page</g3>.',NULL,NULL);
INSERT INTO "segment" VALUES(10,X'251595F79E683849A8F4DC6E134FFC39','Second item',NULL,NULL);
INSERT INTO "segment" VALUES(11,X'99CDE510BBA3A4AB52CE11CBB1F69419','Name',NULL,NULL);
INSERT INTO "segment" VALUES(12,X'538C37FA5ED290CEF1CCDEC168D2D639','Meaning',NULL,NULL);
INSERT INTO "segment" VALUES(13,X'BF8507E64BB2994562543CDB7986F948','one',NULL,NULL);
INSERT INTO "segment" VALUES(14,X'81C3B3059D56611D65BE16EA39A96638','The first',NULL,NULL);
INSERT INTO "segment" VALUES(15,X'7412D585D1D090DFD0820A2E51461AA6','Welcome',NULL,NULL);
INSERT INTO "segment" VALUES(16,X'3DD68A56E17675E09312438BFD0E5FA6','Good <g1>morning</g1>, Tom.',NULL,NULL);
INSERT INTO "segment" VALUES(17,X'B7C0CED6201787C64B0ECED2086A4AEE','Good morning, {name}!',NULL,NULL);
INSERT INTO "segment" VALUES(18,X'C672AA5EA479B417B5D9631A745F94D3','Open',NULL,NULL);
INSERT INTO "segment" VALUES(19,X'6A4975479C13D705E9B9FA90029FDB6B','1 file',NULL,NULL);
INSERT INTO "segment" VALUES(20,X'49B723AEEA3BF9230CDD2931E9F94723','21 files',NULL,NULL);
INSERT INTO "segment" VALUES(21,X'CD267F454997DC46CEE65AAB35C66450','two',NULL,NULL);
INSERT INTO "segment" VALUES(22,X'CF827D14A5FCD5D378FB5666A463EF07','The second one',NULL,NULL);
INSERT INTO "segment" VALUES(23,X'349ED871247C0EBD51593193AA087FBF','22 files',NULL,NULL);
CREATE TABLE target (
  id INTEGER PRIMARY KEY, lang TEXT NOT NULL, settings TEXT NOT NULL, UNIQUE (lang, settings)
);
INSERT INTO "target" VALUES(1,'de','bc79737ee0469d0728e782bb84050054');
INSERT INTO "target" VALUES(2,'pl','bc79737ee0469d0728e782bb84050054');
CREATE TABLE translation (
  target INTEGER NOT NULL, segment INTEGER NOT NULL, text TEXT, quality TEXT, notes TEXT,
  code TEXT, retry INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0, run TEXT,
  PRIMARY KEY (target, segment)
) WITHOUT ROWID;
INSERT INTO "translation" VALUES(1,1,'[de] A guide','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,2,'[de] First item','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,3,'[de] Third item','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,4,'[de] Good morning,','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,5,'[de] everybody.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,6,'[de] A line of text.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,7,'[de] Another line.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,8,'[de] Install','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,9,'[de] Run the <x1/> command in a <g2>clean</g2> folder, see <g3>the page</g3>.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,10,'Der zweite Punkt','ok',NULL,'edited',0,0,'0eedc0de');
INSERT INTO "translation" VALUES(1,11,'[de] Name','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,12,'[de] Meaning','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,13,'[de] one','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,14,'[de] The first','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,15,'[de] Welcome','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,16,'[de] Good <g1>morning</g1>, Tom.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,17,'[de] Good morning, {name}!','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,18,'[de] Open','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,19,'[de] 1 file','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,20,'[de] 21 files','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,21,'[de] two','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(1,22,'[de] The second one','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,1,'[pl] A guide','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,2,'[pl] First item','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,3,'[pl] Third item','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,4,'[pl] Good morning,','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,5,'[pl] everybody.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,6,'[pl] A line of text.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,7,'[pl] Another line.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,8,'[pl] Install','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,9,'[pl] Run the <x1/> command in a <g2>clean</g2> folder, see <g3>the page</g3>.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,10,'[pl] Second item','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,11,'[pl] Name','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,12,'[pl] Meaning','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,13,'[pl] one','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,14,'[pl] The first','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,15,'[pl] Welcome','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,16,'[pl] Good <g1>morning</g1>, Tom.','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,17,'[pl] Good morning, {name}!','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,18,'[pl] Open','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,19,'[pl] 1 file','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,20,'[pl] 21 files','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,21,'[pl] two','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,22,'[pl] The second one','unchecked',NULL,NULL,0,0,'a707940e');
INSERT INTO "translation" VALUES(2,23,'[pl] 22 files','unchecked',NULL,NULL,0,0,'a707940e');
CREATE TABLE written (path NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (path, sha256))
WITHOUT ROWID;
INSERT INTO "written" VALUES('de/config.yaml','6b0b854f10e483c9a43448c0372560839492d13461fc2ba040ce8af9d626b002');
INSERT INTO "written" VALUES('de/guide.md','330a28ad9ef5b8c885738245e70f01f1227e47ecdaf1ae5987c70a56f7d36e43');
INSERT INTO "written" VALUES('de/movie.srt','f74114e86751525112efac021ea6bc80948524fa2824f4e0da92ebe6a8d23ff5');
INSERT INTO "written" VALUES('de/notes.txt','39dd6e1145744a6899400c584635f9bbb5d9a85a52f1731a3d116032726afbb5');
INSERT INTO "written" VALUES('de/page.html','1a3b34c6fe7f7b1a33bf26c84380bc343eb61145ce82b8adfb9349372e35ac41');
INSERT INTO "written" VALUES('de/sub/messages.po','dd8c7e5e0a97f99a7260d3262736c5b2249257e249ca5e6e5083c96970f37142');
INSERT INTO "written" VALUES('de/sub/values.json','8a7cec7fa123b25f2d6c16b28e3604b73f8e2004f40dea8b3ec9de15b17920e6');
INSERT INTO "written" VALUES('de/table.csv','07d70f5d82d5b8f624cac3de9bf825782dd177ce1f41aae0b9ffb4c3b2a43490');
INSERT INTO "written" VALUES('pl/config.yaml','04d163a96b36c603a3e6a939396b7bd7bc88bfc497cb385b9e9951dfe869c82e');
INSERT INTO "written" VALUES('pl/guide.md','59cb6f34c4995eb315160bffb914d5fab774d8a7975f73ca540883b268637f3d');
INSERT INTO "written" VALUES('pl/movie.srt','220c019c21d5cff73613772bc7d61aed8308462adcbdbce932279e8c26e1e056');
INSERT INTO "written" VALUES('pl/notes.txt','bc4014552062421dfb04ceceaee939ed1a8c5d004f8da54457a599eb31a174ab');
INSERT INTO "written" VALUES('pl/page.html','4beaf0124279524d0a663a67c41ef7548e4a9e0734fb73784ab622da607206ef');
INSERT INTO "written" VALUES('pl/sub/messages.po','52a04936b9aa72598a08be927b1059e4deec8490eb901444d1a061df50927df5');
INSERT INTO "written" VALUES('pl/sub/values.json','62e36bc8e8af5b3c94e858b83d1c6309d72df5b331c2f9a0839bd0b09373457d');
INSERT INTO "written" VALUES('pl/table.csv','70914d1591590921f40865bb7518c21dfc0b1e0dc7f50052c96f671a3b2a1009');
CREATE INDEX job_open ON job (target, ended, document, number);
CREATE INDEX issue_of ON issue (file, target);
CREATE INDEX translation_edited ON translation (target) WHERE code='edited';
COMMIT;
