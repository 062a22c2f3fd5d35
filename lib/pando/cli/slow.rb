# frozen_string_literal: true

require "json"
require "pando/cli/control_command"
require "pando/slow_entry"
require "pando/telemetry/printable"

module Pando
  module CLI
    # `pando slow`: the last slow requests, the newest first. With --stacks the end of the slow log's file.
    class Slow < ControlCommand
      LIMIT = Switch.new(name: :limit, flags: %w[--limit], argument: "N", type: Types::Whole.new(1..),
                         help: "With `slow`: show only the N newest requests.").freeze
      STACKS = Switch.new(name: :stacks, flags: %w[--stacks], argument: nil,
                          help: "With `slow`: show the end of the slow log's file, with the stacks.").freeze

      def self.switches = [TEXT_OR_JSON, LIMIT, STACKS]

      private

      def perform
        logs, requests = records.partition { |word, _| word == "log" }
        return show_file(logs.first.last["path"]) if flags[:stacks]

        requests = requests.map { |_, facts| Cluster::Control::Line.typed(facts) }
        terminal.out.puts(chosen_format == "json" ? json(requests) : text(requests))
        CLI::OK
      end

      def records
        records = []
        ControlClient.new(path).ask!("slow", { limit: flags[:limit] }, timeout: ANSWER) { |*record| records << record }
        records
      end

      def json(requests) = JSON.pretty_generate({ "requests" => requests }, ascii_only: true)

      def text(requests)
        return "no slow request so far" if requests.empty?

        requests.map do |facts|
          time = Time.at(facts["time"].to_i).strftime("%F %T")
          request = Telemetry::Printable.escape(facts["request"], 200)
          "#{time}  #{state(facts)}  #{request}  slot #{facts["slot"]}, generation #{facts["generation"]}, " \
          "pid #{facts["pid"]}  #{where(facts)}".rstrip
        end
      end

      # The last sight of a request whose worker was killed stays.
      def state(facts)
        return "after #{facts["seconds"]} s" unless facts["ended"]

        "took #{facts["seconds"]} s#{", #{facts["status"]}" if facts["status"]}"
      end

      # A client has chosen the path, and the application the name of its file.
      def where(facts) = Telemetry::Printable.escape(facts.values_at("location", "reason").compact.join("; "), 400)

      # The server names the file, which may belong to another release than the config file here.
      def show_file(file)
        terminal.out.puts(SlowEntry.newest(file))
        CLI::OK
      rescue SlowEntry::Unreadable => e
        report_failure(e.message)
      end
    end
  end
end
