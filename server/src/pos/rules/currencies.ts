/** ISO 4217 list one: in use, funds, metals, testing (XTS) and "no currency" (XXX). */
const IN_USE =
  'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP ' +
  'BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB ' +
  'EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD ' +
  'JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP ' +
  'MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR ' +
  'RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND ' +
  'TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA ' +
  'XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG';

/** ISO 4217 list three since 1999: a till with old software may go on printing them. */
const WITHDRAWN =
  'AFA ANG ATS AZM BEF BYR CSD CUC CYP DEM EEK ESP FIM FRF GHC GRD HRK IEP ITL LTL LUF LVL MGF ' +
  'MRO MTL MZM NLG PTE ROL SDD SIT SKK SLL SRG STD TMM TRL USS VEB VEF YUM ZMK ZWD ZWL ZWN ZWR';

/**
 * Every currency code a sale may bear. A wrong refusal costs a shop its sale and a wrong acceptance
 * only a remark in the log, so withdrawn codes stay, and a code that is newer than this list is
 * known as soon as the site's Node knows it.
 */
export const CURRENCY_CODES: readonly string[] = [
  ...new Set([
    ...IN_USE.split(' '),
    ...WITHDRAWN.split(' '),
    ...Intl.supportedValuesOf('currency'),
  ]),
].sort();
