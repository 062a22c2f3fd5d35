# frozen_string_literal: true

module Pando
  module Measure
    # What to do about an application that does not boot or answer, by what it has said.
    #
    # @api private
    module Advice
      SECRET = "The application has no secret_key_base in the environment %<environment>s. For a measurement " \
               "SECRET_KEY_BASE_DUMMY=1 gives it one (Rails 7.1 or newer), otherwise SECRET_KEY_BASE=... any long " \
               "text; -e NAME measures in another environment."
      MASTER_KEY = "The credentials of the environment %<environment>s cannot be read here: their key is in " \
                   "config/master.key or RAILS_MASTER_KEY."
      DATABASE = "Is the database of the environment %<environment>s there? RAILS_ENV=%<environment>s " \
                 "bin/rails db:prepare makes it; -e NAME measures in another environment."
      HOST = "The application may answer other names only: --header \"Host: www.example.com\" asks by one."
      LOGIN = "The application may want a login: --header \"Cookie: ...\" or --header \"Authorization: ...\" sends " \
              "what your browser sends."

      KEYS_MISSING = /MessageEncryptor::InvalidMessage|MissingKeyError|Missing encryption key/
      NO_DATABASE = /NoDatabaseError|DatabaseConnectionError|ConnectionNotEstablished|UndefinedTable|no\ such\ table|
                     Could\ not\ find\ table|unable\ to\ open\ database|database\ .*does\ not\ exist/x
      # Lines below the first one of a backtrace.
      BACKTRACE = /^\s+from .*\n?/
      LINES = 20
      KNOWN = { /secret_key_base/ => SECRET, KEYS_MISSING => MASTER_KEY, NO_DATABASE => DATABASE }.freeze
      private_constant :KNOWN, :KEYS_MISSING, :NO_DATABASE, :BACKTRACE, :LINES

      # @param output [String] of the application
      # @return [String, nil]
      def self.on(output, environment)
        words = KNOWN.find { |pattern, _| output.match?(pattern) }&.last
        words && format(words, environment: environment)
      end

      # @param output [String]
      # @return [String] the end of it, without backtraces
      def self.last_words(output) = output.gsub(BACKTRACE, "").lines.last(LINES).join.strip

      # @param path [String] of what a process has printed
      # @return [String] empty if there is nothing
      def self.read(path)
        File.exist?(path) ? File.read(path, mode: "rb").force_encoding(Encoding::UTF_8).scrub : ""
      end

      # @param statuses [Array<Integer>] of requests that all have failed
      # @return [String, nil]
      def self.on_statuses(statuses)
        return LOGIN if statuses.include?(401)

        HOST if statuses.any? && statuses.all?(403)
      end
    end
  end
end
