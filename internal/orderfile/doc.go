// Package orderfile reads orders from files (CSV and JSON Lines), hands them to whoever stores them, and reports on
// every row of the file.
//
// # CSV
//
// The delimiter and the decimal mark are declared (CSVOptions), never guessed. The first row names the columns
// (Columns); an unknown, doubled or missing one refuses the file. Columns of another name are declared, too
// (CSVOptions.Rename), and a value that is the same for the whole file may be given once (CSVOptions.Constants).
//
//   - Text is UTF-8, with or without a byte order mark. UTF-16 and other encodings refuse the file.
//   - Quotes are strict (RFC 4180). A quote out of place or a wrong number of fields refuses the file, because from
//     there on nobody knows which value belongs where.
//   - Line ends may be LF or CR LF. Inside quotes CR LF becomes LF, so a file saved with other line ends says the same.
//   - A first line "sep=;" is honoured where it agrees with the declared delimiter, and refuses the file where not.
//   - An empty cell is an absent member. Rows without any value are counted as blank and otherwise ignored.
//   - Ids are text. Blanks around them are trimmed, U+00A0 included; case and leading zeros count: A-1 is not a-1,
//     00123 is not 123. What a spreadsheet makes of ids (1E+05, ="00123", #REF!) is refused.
//     With an apostrophe in front an id is taken as it stands: WriteCSV and InvoiceWriter put it there where one looks
//     like that.
//   - Names, addresses, descriptions and notes are taken as they are. One apostrophe in front of = + - @ TAB or CR is
//     taken off: WriteCSV puts it there, as spreadsheets do, lest the text be run as a formula.
//   - Amounts are plain: digits, the declared mark, a minus sign. No thousands separators, no exponents, no signs of
//     currencies.
//
// Metadata stands in columns of single members (metadata.cost_centre) or in one, metadata, as a JSON object of texts.
// Columns whose names begin with "invoice." are what InvoiceWriter adds about the invoice of each row; they are read
// over, so that a file of invoices is a file of the orders behind them.
//
// The rows of one source and order id form one order, wherever they stand in the file. Within it rows of one role and
// sequence form one invoice, and each row is a line of it. Values that belong to the order or the invoice must agree
// between its rows; a later row may leave them out. Two equal rows are two equal lines, unless the column "line"
// numbers the lines of each invoice: then a row with the same number and content is a copy and adds nothing, and one
// with other content is refused.
//
// # JSON Lines
//
// One crm.Order per line, decoded strictly; blank lines are counted and skipped. Each line is a row.
//
// # What is taken
//
// Orders are the unit: an order with a bad row is refused with all its rows. By default one refusal keeps the whole
// file out. Importing a file again changes nothing.
package orderfile
