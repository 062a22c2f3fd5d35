# frozen_string_literal: true

require "pando/mebibytes"

module Pando
  module CLI
    # The table of processes in `pando status`, one line each.
    #
    # @api private
    module ProcessTable
      include Mebibytes

      COLUMNS = { "role" => "ROLE", "generation" => "GEN", "pid" => "PID", "state" => "STATE", "requests" => "REQUESTS",
                  "pss" => "PSS", "private" => "PRIVATE", "job" => "" }.freeze
      RIGHT = %w[generation pid requests pss private].freeze

      private

      def table
        rows = [COLUMNS, *processes.map { |role, pairs| row(role, pairs) }]
        widths = COLUMNS.keys.to_h { |key| [key, rows.map { |row| row[key].to_s.size }.max] }
        rows.map { |row| COLUMNS.keys.map { |key| cell(key, row[key].to_s, widths[key]) }.join("  ").rstrip }
      end

      def cell(key, text, width) = RIGHT.include?(key) ? text.rjust(width) : text.ljust(width)

      def row(role, pairs)
        remarks = { "not fork-safe" => pairs["unsafe"], "trainee" => pairs["trainee"] }.select { |_, said| said }.keys
        role = "node" if pairs["running"]
        { **pairs, "role" => [pairs["pool"], role, pairs["name"] || pairs["slot"]].compact.join(" "),
                   "pss" => mebibytes(pairs["pss"]), "private" => mebibytes(pairs["private"]),
                   "job" => [*doing(pairs), *remarks].join("; ") }
      end

      # The current request, or the numbers of jobs.
      def doing(pairs)
        return jobs(pairs) if pairs["running"]

        "#{printable(pairs["job"])} for #{pairs["seconds"]} s" if pairs["job"]
      end

      def jobs(pairs)
        facts = { "running" => pairs["running"], "failed" => pairs["failed"], "waiting" => pairs["lag"].to_i }
        said = facts.select { |_, number| number.positive? }.map { |what, number| "#{number} #{what}" }.join(", ")
        said.empty? ? nil : said
      end

      # A request's path comes from the client, so no control character in it may reach the terminal.
      def printable(text) = text.gsub(/[^[:print:]]/, "?")
    end
  end
end
