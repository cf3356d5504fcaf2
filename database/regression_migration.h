// Version 5 of the schema: the tables of regression tracking.
#ifndef TILEFARM_DATABASE_REGRESSION_MIGRATION_H_
#define TILEFARM_DATABASE_REGRESSION_MIGRATION_H_

namespace tilefarm::database {

inline constexpr int kRegressionVersion = 5;

extern const char kRegressionTables[];

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_REGRESSION_MIGRATION_H_
