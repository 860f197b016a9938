"""What a column's name says about its role, in several languages.

A name is read as words: `dateOfBirth`, `date_of_birth` and `DATE OF BIRTH` are the same three, and
`dateofbirth` is found too. A concept applies when one of its phrases stands in the name as whole
words; the longest phrase decides, so `marital status` is not a `status`.

The direct identifiers and the date and place entries follow the identifiers listed by HIPAA safe
harbor (45 CFR 164.514(b)(2)); the sensitive ones follow the special categories of data in
Article 9 GDPR, with salary, debt and criminal record added. Race, ethnicity and nationality are
quasi-identifiers although Article 9 names the first two: they are visible to others, and known to
link records. Religion is sensitive: it is rarely visible, and harm comes from learning it. Income
is a quasi-identifier (others know it roughly, and registers list it), an exact salary sensitive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from aegis.policy.model import Role
from aegis.policy.suggest_persons import Named, whose_name


@dataclass(frozen=True)
class Concept:
    """Something that column names speak of.

    Attributes
    ----------
    name
        How a reason calls it.
    role
        The role that it suggests.
    phrases
        Spellings, lower case, words separated by one space.
    weak
        Whether the phrases must end the name and nearly every value must be different.
    codes
        Whether whole numbers under this name are codes without an order.
    """

    name: str
    role: Role
    phrases: tuple[str, ...]
    weak: bool = False
    codes: bool = False


def _concept(
    name: str, role: Role, phrases: str, *, weak: bool = False, codes: bool = False
) -> Concept:
    return Concept(name, role, tuple(p.strip() for p in phrases.split(",")), weak, codes)


AGE, POSTCODE = "age", "a postcode"
"""Concepts that candidate masks depend on."""
PERSON_NAME = "a person's name"
"""Also what `name` says, alone or beside words for persons; see `aegis.policy.suggest_persons`."""
_ID, _QUASI, _SENSITIVE = Role.IDENTIFIER, Role.QUASI_IDENTIFIER, Role.SENSITIVE

CONCEPTS: tuple[Concept, ...] = (
    # Direct identifiers.
    _concept(
        PERSON_NAME,
        _ID,
        "first name, last name, full name, given name, family name, middle name, maiden name, surname, "
        "surnames, forename, christian name, fname, lname, patient name, customer name, client name, "
        "person name, employee name, student name, user name, nickname, initials, vorname, nachname, zuname, "
        "rufname, geburtsname, familienname, benutzername, nom de famille, prenom, prénom, prenoms, prénoms, "
        "patronyme, apellido, apellidos, cognome, cognomi, nominativo, sobrenome, achternaam, voornaam, "
        "имя, фамилия, 姓名, 氏名",
    ),
    _concept(
        "an e-mail address",
        _ID,
        "email, e mail, mail address, mailadresse, emailadresse, correo, correo electronico, "
        "correo electrónico, courriel, adresse mail, posta elettronica",
    ),
    _concept(
        "a telephone number",
        _ID,
        "phone, telephone, phone number, phone no, contact number, mobile number, mobile phone, cell phone, "
        "msisdn, fax, telefon, telefonnummer, rufnummer, mobilnummer, mobiltelefon, handynummer, "
        "telefono, teléfono, téléphone, numero de telephone, telefone, movil, móvil, cellulare",
    ),
    _concept(
        "a postal address",
        _ID,
        "address, addr, street, street address, address line, house number, adresse, anschrift, strasse, "
        "straße, hausnummer, direccion, dirección, domicilio, domicile, calle, rue, indirizzo, endereco, "
        "endereço, adres",
    ),
    _concept(
        "an official number of a person",
        _ID,
        "ssn, social security number, social security, social insurance number, national id, "
        "national insurance number, national number, nin, nino, nhs number, medicare number, passport, "
        "passport number, tax id, tin, driver license, drivers license, driving licence, licence number, "
        "license number, mrn, medical record number, medical record, health record number, "
        "health plan number, insurance number, policy number, sozialversicherungsnummer, "
        "versichertennummer, versicherungsnummer, steuernummer, steuer id, ausweisnummer, passnummer, "
        "patientennummer, krankenkassennummer, numero de securite sociale, securite sociale, dni, "
        "pasaporte, passeport, passaporto, curp, rfc, cpf, codice fiscale, tessera sanitaria, nif, bsn",
    ),
    _concept(
        "an account or device of a person",
        _ID,
        "account number, account no, iban, credit card, card number, kontonummer, kreditkarte, "
        "numero de compte, numero de cuenta, tarjeta de credito, license plate, number plate, kennzeichen, "
        "matricula, targa, vin, imei, imsi, mac address, ip address, ip, device id, cookie, login, url",
    ),
    _concept(
        "a number that names one person or record",
        _ID,
        "user id, customer id, client id, patient id, person id, member id, employee id, student id, "
        "account id, subject id, participant id, record id, row id, case id, session id, transaction id, "
        "patient number, customer number, client number, employee number, member number, case number, "
        "kundennummer, personalnummer, matrikelnummer, aktenzeichen, fallnummer, numero de dossier, "
        "numero client, numero de cliente, numero de paciente, historia clinica",
    ),
    _concept(
        "a key of the record",
        _ID,
        "id, ids, uuid, guid, identifier, serial, serial number, rowid, record number, key, kennung, "
        "identifiant, identificador, identificativo",
        weak=True,
    ),
    # Quasi-identifiers.
    _concept(
        AGE,
        _QUASI,
        "age, ages, age years, alter, lebensalter, edad, âge, età, idade, leeftijd, возраст, 年龄, 年齢",
    ),
    _concept(
        "a date of birth",
        _QUASI,
        "birth, birthday, birthdate, date of birth, birth date, birth year, year of birth, dob, yob, "
        "born, geburtsdatum, geburtsjahr, geburtstag, geboren, naissance, date de naissance, nacimiento, "
        "fecha de nacimiento, data di nascita, nascita, nascimento, geboortedatum",
    ),
    _concept(
        "a date of death",
        _QUASI,
        "death, date of death, death date, dod, deceased, sterbedatum, deces, décès, fallecimiento",
    ),
    _concept(
        "sex or gender",
        _QUASI,
        "sex, gender, geschlecht, sexe, sexo, genre, genero, género, sesso, genere, geslacht, пол, 性别, 性別",
        codes=True,
    ),
    _concept(
        "race or ethnicity",
        _QUASI,
        "race, ethnicity, ethnic, ethnic group, ethnie, hispanic, latino, etnia, raza, ethnische",
        codes=True,
    ),
    _concept(
        "nationality",
        _QUASI,
        "nationality, citizenship, citizen, nationalität, nationalitaet, staatsangehörigkeit, "
        "staatsangehoerigkeit, nationalite, nationalité, nacionalidad, nazionalita, nacionalidade, "
        "immigration status, foreign worker, country of birth, birth country, native country",
        codes=True,
    ),
    _concept(
        POSTCODE,
        _QUASI,
        "zip, zip code, zipcode, postcode, post code, postal code, postal, plz, postleitzahl, code postal, "
        "codigo postal, código postal, cep, eircode, pincode",
        codes=True,
    ),
    _concept(
        "a place",
        _QUASI,
        "city, town, village, municipality, county, district, region, province, state, country, canton, "
        "territory, neighborhood, neighbourhood, borough, census tract, location, residence, "
        "stadt, ort, wohnort, gemeinde, landkreis, bundesland, kanton, ville, commune, departement, "
        "département, pays, ciudad, municipio, pais, país, provincia, citta, città, comune, regione, paese, "
        "cidade, estado, gemeente, город, 城市",
        codes=True,
    ),
    _concept(
        "geographic coordinates",
        _QUASI,
        "latitude, longitude, lat, lon, lng, coordinates, geolocation, gps",
    ),
    _concept(
        "marital status",
        _QUASI,
        "marital, marital status, civil status, personal status, marriage, married, familienstand, "
        "etat civil, état civil, situation familiale, estado civil, stato civile, burgerlijke staat",
        codes=True,
    ),
    _concept(
        "the household",
        _QUASI,
        "household, household size, family size, relationship, relationship to head, children, child count, "
        "kids, dependents, dependants, siblings, haushalt, kinder, kinderzahl, enfants, hijos, figli, filhos",
    ),
    _concept(
        "education",
        _QUASI,
        "education, education level, educational attainment, degree, schooling, school, university, "
        "qualification, bildung, schulabschluss, abschluss, diplome, diplôme, educacion, educación, "
        "estudios, istruzione, escolaridade, opleiding",
    ),
    _concept(
        "occupation",
        _QUASI,
        "occupation, job, job title, profession, work class, workclass, employment, employer, industry, "
        "working status, employment status, beruf, tätigkeit, arbeitgeber, branche, métier, metier, emploi, "
        "ocupacion, ocupación, trabajo, profesion, professione, occupazione, profissao, beroep",
        codes=True,
    ),
    _concept(
        "income", _QUASI, "income, earnings, einkommen, revenu, ingresos, reddito, renda, inkomen"
    ),
    _concept(
        "language",
        _QUASI,
        "language, mother tongue, native language, sprache, muttersprache, langue, idioma, lingua",
        codes=True,
    ),
    _concept("military service", _QUASI, "veteran, military, military service", codes=True),
    # Sensitive attributes.
    _concept(
        "health",
        _SENSITIVE,
        "diagnosis, diagnoses, disease, illness, disorder, icd, icd9, icd10, symptom, symptoms, medication, "
        "medical condition, health condition, treatment, therapy, drug, drugs, hiv, cancer, diabetes, "
        "disability, blood type, pregnant, pregnancy, mental health, smoker, smoking, alcohol, injury, "
        "diagnose, krankheit, erkrankung, medikament, behinderung, maladie, diagnostic, enfermedad, "
        "diagnostico, diagnóstico, malattia, diagnosi, doenca, doença, ziekte",
        codes=True,
    ),
    _concept(
        "salary",
        _SENSITIVE,
        "salary, wage, wages, compensation, gehalt, lohn, salaire, salario, sueldo, stipendio, salaris",
    ),
    _concept(
        "religion",
        _SENSITIVE,
        "religion, religious, faith, confession, denomination, konfession, religión, religione, religiao",
        codes=True,
    ),
    _concept(
        "political opinion",
        _SENSITIVE,
        "political, political party, politics, vote, voted, trade union, union member, union membership",
        codes=True,
    ),
    _concept("sexual orientation", _SENSITIVE, "sexual orientation, sexuality", codes=True),
    _concept(
        "genetic or biometric data",
        _SENSITIVE,
        "genetic, genotype, genome, dna, biometric, fingerprint",
    ),
    _concept(
        "a criminal record",
        _SENSITIVE,
        "criminal, criminal record, conviction, convictions, arrest, arrests, offence, offense, prison",
        codes=True,
    ),
    _concept(
        "debt or creditworthiness",
        _SENSITIVE,
        "debt, debts, credit score, credit history, bankruptcy, default history, schulden",
    ),
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CODE_WORDS = _words(
    "id code codes type category kind class cluster group segment market region country state city zone area "
    "site channel status branch department station route product brand model destination continent stat "
    "typ kategorie klasse gruppe tipo categoria clase"
)
_MEASURE_WORDS = _words(
    "amount price cost costs fee value total balance sum revenue sales profit quantity count weight height "
    "distance length duration size score rate ratio percentage population density temperature pressure "
    "volume speed area time seconds minutes hours days betrag preis kosten wert menge anzahl summe gewicht "
    "monto precio importe cantidad montant prix quantite importo prezzo"
)
_CODE_ENDINGS = _words("id code codes type")
_MOMENT_WORDS = _words("date datetime timestamp")
_FLAG_WORDS = frozenset({"is", "has", "was", "hat", "ist"})
_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9à-ÿ])(?=[A-ZÀ-Þ])")
_MOST_WORDS = 4
"""Most words of a phrase."""
_LONGEST = 200
"""Characters of a name that are read; a longer one is no name of a concept."""


@dataclass(frozen=True)
class Words:
    """A column's name as words, with and without accents."""

    plain: tuple[str, ...]
    bare: tuple[str, ...]

    def phrases(self) -> Iterator[tuple[str, bool]]:
        """Yield every run of words without spaces, and whether it ends the name."""
        for words in dict.fromkeys((self.plain, self.bare)):
            for start in range(len(words)):
                for end in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1):
                    yield "".join(words[start:end]), end == len(words)


@lru_cache(maxsize=4096)
def read_words(name: str) -> Words:
    """Return the words of a column's name in lower case."""
    split = _CAMEL.sub(" ", unicodedata.normalize("NFC", name[:_LONGEST]))
    plain = tuple(_WORD.findall(split.lower()))
    stripped = unicodedata.normalize("NFKD", split.lower())
    bare = tuple(_WORD.findall("".join(c for c in stripped if not unicodedata.combining(c))))
    return Words(plain, bare)


@cache
def _concepts_by_phrase() -> dict[str, list[Concept]]:
    """Return the concepts of every phrase, spaces left out: `date of birth` is `dateofbirth`."""
    found: dict[str, list[Concept]] = {}
    for concept in CONCEPTS:
        for phrase in concept.phrases:
            found.setdefault(phrase.replace(" ", ""), []).append(concept)
    return found


@cache
def _person_name() -> Concept:
    return next(concept for concept in CONCEPTS if concept.name == PERSON_NAME)


def names_thing(name: str) -> bool:
    """Return whether the column holds names of things, such as `product_name`."""
    return whose_name(read_words(name).bare) is Named.THING


@lru_cache(maxsize=4096)
def find_concept(name: str) -> Concept | None:
    """Return what the name speaks of, by its longest matching phrase; None where it says nothing.

    A flag (`is_mobile`, `has_email`) tells of a yes or no, not of the thing itself, and never
    names an identifier. The name of a thing is no person's, although `name` stands in it.
    """
    words = read_words(name)
    flag = bool(words.bare) and words.bare[0] in _FLAG_WORDS
    whose = whose_name(words.bare)
    if whose is Named.PERSON and not flag:
        return _person_name()
    by_phrase = _concepts_by_phrase()
    best: Concept | None = None
    longest = 0
    for phrase, ends in words.phrases():
        for concept in by_phrase.get(phrase, ()):
            allowed = (ends or not concept.weak) and not (flag and concept.role is Role.IDENTIFIER)
            if concept.name == PERSON_NAME and whose is Named.THING:
                continue
            if allowed and len(phrase) > longest:
                best, longest = concept, len(phrase)
    return best


def names_codes(name: str) -> bool:
    """Return whether whole numbers under this name are codes, so that their order means nothing."""
    concept = find_concept(name)
    if concept is not None and concept.codes:
        return True
    words = read_words(name).bare
    if not _CODE_ENDINGS.isdisjoint(words[-1:]):
        return True
    return not _CODE_WORDS.isdisjoint(words) and _MEASURE_WORDS.isdisjoint(words)


def names_measure(name: str) -> bool:
    """Return whether the name speaks of a measured quantity, whose values may well all differ."""
    words = read_words(name).bare
    return not _MEASURE_WORDS.isdisjoint(words) and _MOMENT_WORDS.isdisjoint(words)
