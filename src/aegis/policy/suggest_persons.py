"""Whose name a column called "... name" holds: a person's, a thing's, or nobody can tell.

`name` alone, or beside words for persons and parts of a name, is a person's: `name`, `guest_name`,
`name_of_child`, `nom complet`, `Kundenname`. Beside a word for a thing it is the thing's:
`product_name`, `file name`, `nom_produit`. Of several words the one next to it decides. With any
other word the header does not say, and the values decide (`aegis.policy.suggest_roles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class Named(Enum):
    """What bears the name that a column holds."""

    PERSON = "person"
    THING = "thing"
    UNKNOWN = "unknown"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAME = _words("name names namen nom noms nombre nombres nome nomi naam nimi navn namn")
_FILLERS = _words(
    "of the a full complete legal birth preferred display real alias first second third last given "
    "family middle maiden der des die voller vollstandiger rufname de del della di du da do le la el il "
    "e y et completo completa complet usuel usage naissance jeune fille nacimiento pila propio"
)
_PERSONS = _words(
    # English
    "person patient customer client employee worker staff student pupil teacher user member guest "
    "visitor passenger traveler traveller driver donor recipient contact author writer owner holder "
    "father mother parent spouse husband wife partner child kid son daughter sibling brother sister "
    "relative guardian applicant candidate borrower debtor creditor tenant landlord subject participant "
    "respondent resident citizen doctor physician nurse practitioner insured beneficiary claimant payer "
    "payee sender receiver buyer seller purchaser subscriber manager supervisor player voter defendant "
    "plaintiff victim offender suspect inmate witness individual caller signatory "
    # German
    "kunde kunden patienten mitarbeiter schuler schueler nutzer benutzer mitglied mitglieder gast arzt "
    "besitzer inhaber vater mutter ehepartner kind bewerber mieter versicherter versicherten personen "
    # French
    "personne utilisateur employe salarie eleve etudiant membre medecin proprietaire pere mere conjoint "
    "enfant assure beneficiaire "
    # Spanish, Italian, Portuguese
    "persona paciente cliente usuario empleado trabajador alumno estudiante miembro medico propietario "
    "padre madre conyuge hijo paziente utente dipendente studente membro ospite proprietario coniuge "
    "pessoa utilizador funcionario aluno"
)
_THINGS = _words(
    "product item article brand make model material part component category type kind class group "
    "segment course project program programme campaign team club league event game movie "
    "film song album title book journal magazine channel station stop line route port airport airline "
    "flight ship vessel vehicle car hotel room restaurant shop store site venue place building facility "
    "plant factory warehouse branch department division unit company firm business organisation "
    "organization employer agency bank institution hospital clinic pharmacy lab laboratory "
    "school university college church country nation state province region county district city town "
    "village municipality street road area zone location island river lake park file folder directory "
    "path table column field variable attribute feature parameter metric measure dataset database schema "
    "host server domain node device sensor machine computer printer app application package module "
    "function method process task service queue topic bucket plan tariff policy fund stock "
    "asset currency crop plant species animal pet dog cat horse gene protein compound chemical drug "
    "medicine medication test exam procedure diagnosis disease condition color colour font image "
    # German
    "produkt artikel marke modell firma firmen unternehmen abteilung stadt ort land strasse datei ordner "
    "spalte tabelle spiel verein haltestelle filiale projekt kurs gerat geraet "
    # French
    "produit marque modele entreprise societe magasin ville commune pays rue fichier dossier colonne "
    "projet cours hotel "
    # Spanish, Italian, Portuguese
    "producto marca modelo empresa tienda ciudad municipio pais calle archivo carpeta columna proyecto "
    "curso prodotto modello azienda negozio citta comune paese via cartella colonna progetto corso "
    "produto loja cidade arquivo"
)
_ENDINGS = ("names", "namen", "name")


def whose_name(words: Sequence[str]) -> Named | None:
    """Return what bears the name that a column holds, None where the header speaks of no name.

    Parameters
    ----------
    words
        The words of the header in lower case, without accents.
    """
    split = [part for word in words for part in _compound(word)]
    at = next((i for i, word in reversed(list(enumerate(split))) if word in _NAME), None)
    if at is None:
        return None
    before, after = (
        [word for word in part if not (word in _FILLERS or word in _NAME or word.isdigit())]
        for part in (split[:at], split[at + 1 :])
    )
    # "hotel guest name" is the guest's, "nom du client" the client's.
    nearest = before[-1] if before else after[0] if after else None
    if nearest in _THINGS:
        return Named.THING
    return Named.PERSON if nearest is None or nearest in _PERSONS else Named.UNKNOWN


def _compound(word: str) -> tuple[str, ...]:
    """Split `guestname` and `Kundenname` in two, where the first part is known."""
    for ending in _ENDINGS:
        start = word.removesuffix(ending)
        if start != word and start in _PERSONS | _THINGS:
            return start, "name"
    return (word,)
