# frozen_string_literal: true

require "pando/errors"

module Pando
  module Measure
    # Nothing could be measured; the message says why, and what to do. The command exits with status 2.
    class NotMeasured < Error
      # @param subjects [Array<Subject>] that have failed
      # @return [NotMeasured] with the end of their output, and what to do about it
      def self.because_of(subjects, summary)
        said = subjects.reject { |subject| subject.last_words.empty? }.flat_map do |subject|
          [*("Output of #{subject.name}:" if subjects.size > 1), subject.last_words]
        end
        advice = subjects.filter_map(&:advice).uniq
        new(["#{subjects.map(&:name).join(" and ")}: #{summary}", *advice, *said].join("\n"))
      end
    end

    # Advice for an application that does not boot or answer, chosen by its output.
    module Advice
      SECRET = "The application has no secret_key_base in the %<environment>s environment. For the measurement, " \
               "set SECRET_KEY_BASE_DUMMY=1 (Rails 7.1 or newer) or SECRET_KEY_BASE to any long text. To measure in " \
               "another environment, use -e NAME."
      MASTER_KEY = "The credentials of the %<environment>s environment cannot be decrypted. Put their key into " \
                   "config/master.key or RAILS_MASTER_KEY."
      DATABASE = "The database of the %<environment>s environment may be missing. Create it with " \
                 "`RAILS_ENV=%<environment>s bin/rails db:prepare`, or measure in another environment with -e NAME."
      HOST = "The application may answer to its own host name only. Send it with --header \"Host: www.example.com\"."
      LOGIN = "The application may require a login. Send your browser's credentials with --header \"Cookie: ...\" or " \
              "--header \"Authorization: ...\"."

      KEYS_MISSING = /MessageEncryptor::InvalidMessage|MissingKeyError|Missing encryption key/
      NO_DATABASE = /NoDatabaseError|DatabaseConnectionError|ConnectionNotEstablished|UndefinedTable|no\ such\ table|
                     Could\ not\ find\ table|unable\ to\ open\ database|database\ .*does\ not\ exist/x
      # The lines of a backtrace after its first.
      BACKTRACE = /^\s+from .*\n?/
      LINES = 20
      KNOWN = { /secret_key_base/ => SECRET, KEYS_MISSING => MASTER_KEY, NO_DATABASE => DATABASE }.freeze

      # @return [String, nil]
      def self.on(output, environment)
        words = KNOWN.find { |pattern, _| output.match?(pattern) }&.last
        words && format(words, environment: environment)
      end

      # The end of the output, without backtraces.
      def self.last_words(output) = output.gsub(BACKTRACE, "").lines.last(LINES).join.strip

      # The output of a process; empty if there is no such file.
      def self.read(path)
        File.exist?(path) ? File.read(path, mode: "rb").force_encoding(Encoding::UTF_8).scrub : ""
      end

      # @param statuses [Array<Integer>] of requests, all of which have failed
      # @return [String, nil]
      def self.on_statuses(statuses)
        return LOGIN if statuses.include?(401)

        HOST if statuses.any? && statuses.all?(403)
      end
    end
  end
end
