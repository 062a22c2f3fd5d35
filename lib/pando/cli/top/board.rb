# frozen_string_literal: true

require "pando/cli/status_report"
require "pando/telemetry/printable"

module Pando
  module CLI
    class Top
      # What `pando top` shows of one answer of the server, as lines of text for a width and a height. Made by Controls,
      # or by Top without a terminal. Every line is printable ASCII: what comes from outside cannot steer the terminal
      # or break a column.
      class Board < StatusReport
        # A line, and how it stands out: :title, :head, :selected, :warning, :dim or nil.
        Line = Struct.new(:text, :style)
        Column = Struct.new(:key, :title, :right)

        TABLE = [["role", "PROCESS", false], ["generation", "GEN", true], ["pid", "PID", true],
                 ["state", "STATE", false], ["requests", "REQS", true], ["rate", "REQ/S", true], ["pss", "PSS", true],
                 ["private", "PRIVATE", true], ["held", "CONN", true], ["doing", "DOING", false]]
                .map { |one| Column.new(*one) }.freeze
        # Columns in the order in which they are left out when the screen is too narrow for what processes do.
        DISPENSABLE = %w[held pss generation requests pid state rate private].freeze
        # Columns for what a process does, at least.
        DOING = 20
        # Orders of the table: by name, then what is largest comes first.
        ORDERS = %w[process time rate requests private pss].freeze
        # Lines for events on a screen of 24, and the least.
        EVENTS = 4
        # Lines of generations and policies that may be shown at most.
        NOTES = 6

        def initialize(records, results) # rubocop:disable Lint/MissingSuper
          @records = records
          @results = results
          @memory = results.memory
        end

        def rows(order = ORDERS.first)
          return processes if order == "process"

          processes.sort_by.with_index { |(_, pairs), at| [-measure(pairs, order), at] }
        end

        # @param width [Integer, nil] nil: as wide as it gets @param height [Integer, nil] nil: everything
        # @return [Array<Line>] at most `height`
        def lines(width: nil, height: nil, order: ORDERS.first, selected: nil, events: [])
          top = height ? summary.first([height / 2, 1].max) : summary
          shown, recent = share(height, top.size, events)
          all = [*top, *table_lines(rows(order), width, order, selected, shown), *tail(recent, shown)]
          fitted(all, width, height)
        end

        # One process, in full.
        def details(pid, width: nil, height: nil, events: [])
          role, pairs = processes.find { |_, one| one["pid"] == pid }
          return [Line.new("The process #{pid} has ended.", :warning)] unless pairs

          lines = [Line.new(name(role, pairs), :title), *plain(facts(pairs)), Line.new(""),
                   Line.new("its events", :head), *plain(events.reverse)]
          fitted(lines, width, height)
        end

        # @return [String] "web worker 3", for people
        def name(role, pairs)
          role = "node" if pairs["running"]
          [pairs["pool"], role, pairs["name"] || pairs["slot"]].compact.join(" ")
        end

        # The pool that a process belongs to, and how many workers it is to have.
        # @return [Array(String, Integer)] the name is nil if there is only one pool
        def pool_of(pairs)
          pool = all("pool").find { |one| one["name"] == pairs["pool"] } || all("pool").first
          pool ? pool.values_at("name", "workers") : [nil, one("server")["workers"]]
        end

        def draining? = one("server")["state"] == "draining"

        # @return [String] printable ASCII, cut to the width
        def self.fit(text, width)
          text = Telemetry::Printable.escape(text, 4096).gsub("\\\\", "\\").gsub(/[^\x20-\x7e]/, "?")
          return text unless width && text.size > width

          width > 12 ? "#{text[0, width - 2]}.." : text[0, [width, 0].max]
        end

        private

        def fitted(lines, width, height)
          lines.first(height || lines.size).map { |line| Line.new(Board.fit(line.text, width), line.style) }
        end

        def processes
          @processes ||= [["monitor", one("server").slice("pid", "state")], *children].map do |role, pairs|
            usage = @memory[pairs["pid"]]
            held = pairs["connections"].to_i + pairs["streams"].to_i
            [role, { **pairs, "rate" => @results.rates[pairs["pid"]], "pss" => usage&.pss, "private" => usage&.private,
                              "held" => (held if held.positive?) }.compact]
          end
        end

        def measure(pairs, order)
          (order == "time" ? pairs["job"] && pairs["seconds"] : pairs[order]).then { |value| value ? value.to_f : -1.0 }
        end

        def summary
          places = listeners.join("; ") unless listeners.empty?
          [Line.new(head, :title), *[queue, *traffic, sharing_line, places].compact.map { |text| Line.new(text) },
           *pools_and_generations]
        end

        # In direct mode there is no reactor that counts responses.
        def traffic
          return [format("requests/s: %.1f", @results.rates.values.compact.sum)] if all("responses").empty?

          classes = @results.classes.select { |_, rate| rate.positive? }
          by_class = classes.map { |name, rate| "#{name} #{format("%.1f", rate)}" }.join(", ")
          rate = "requests/s: #{format("%.1f", @results.classes.values.sum)}#{" (#{by_class})" unless by_class.empty?}"
          times = %w[duration queue].filter_map { |kind| percentiles(kind) }
          [rate, ("latency: #{times.join("; ")}" if times.any?)]
        end

        def percentiles(kind)
          half, most = @results.latency[kind]
          "#{kind.sub("queue", "queue time")} p50 #{milliseconds(half)}, p99 #{milliseconds(most)}" if half
        end

        # Right to a quarter.
        def milliseconds(seconds)
          value = seconds * 1000
          return format("%.1f s", seconds) if value >= 10_000

          format(value < 10 ? "%.1f ms" : "%.0f ms", value)
        end

        def sharing_line
          known = processes.filter_map { |_, pairs| @memory[pairs["pid"]] }
          missing = processes.size - known.size
          pss, own, rss = %i[pss private rss].map { |key| known.sum(&key) }
          rest = " (#{missing} not measured yet)" if missing.positive?
          "memory: #{mebibytes(pss)} = private #{mebibytes(own)} + shared #{mebibytes(pss - own)}; without sharing " \
            "#{mebibytes(rss)}#{rest}"
        end

        def pools_and_generations
          warnings = [*throttled_restarts, *lost_threads, *changed_states, *refused_paths]
          lines = [*plain(pool_lines), *generations, *plain(reforking),
                   *warnings.map { |text| Line.new(text, :warning) }]
          return lines if lines.size <= NOTES

          [*lines.first(NOTES - 1), Line.new("(#{lines.size - NOTES + 1} more: pando status)", :dim)]
        end

        def plain(texts) = texts.map { |text| Line.new(text) }

        # One that is still to prove itself stands out.
        def generations
          all("generation").map do |one|
            text = "generation #{one["number"]}#{of(one)} is #{one["state"]} (#{one["purpose"]}), " \
                   "#{duration(one["age"])} old#{standing(one)}"
            Line.new(text, (:head unless one["state"] == "current"))
          end
        end

        # How many processes and which events fit.
        def share(height, above, events)
          return [nil, events] unless height

          left = [height - above - 2, 0].max # the table's head, the events' head
          least = [EVENTS, left / 3].min
          rows = [processes.size, left - least].min
          [rows, events.last([left - rows, 0].max)]
        end

        def tail(events, shown)
          hidden = shown ? processes.size - shown : 0
          rest = " (#{hidden} more processes: scroll)" if hidden.positive?
          [Line.new("EVENTS#{rest}", :head), *events.map { |text| Line.new(text) }]
        end

        def table_lines(rows, width, order, selected, shown)
          titles = TABLE.to_h { |one| [one.key, title(one, order)] }
          cells = rows.map { |role, pairs| cells(role, pairs) }
          widths = widths([titles, *cells])
          columns = columns(cells, widths, width)
          at = rows.index { |_, pairs| pairs["pid"] == selected } if selected
          body = plain(cells.map { |row| joined(row, columns, widths) })
          body[at].style = :selected if at
          [Line.new(joined(titles, columns, widths), :head), *window(body, at || 0, shown)]
        end

        def widths(rows) = TABLE.to_h { |one| [one.key, rows.map { |row| row[one.key].to_s.size }.max + 1] }

        def joined(row, columns, widths)
          columns.map { |one| cell(one, row[one.key].to_s, widths[one.key]) }.join.rstrip
        end

        # Those that fit, with the selected one among them.
        def window(lines, at, shown)
          return lines unless shown && lines.size > shown

          lines[(at - (shown / 2)).clamp(0, lines.size - shown), shown]
        end

        # The column that the table is sorted by is marked.
        def title(column, order)
          sorted = { "process" => "role", "time" => "doing" }.fetch(order, order)
          column.key == sorted ? "#{column.title}*" : column.title
        end

        def cell(column, text, width)
          return text if column.key == "doing"

          column.right ? "#{text.rjust(width - 1)} " : text.ljust(width)
        end

        # Those that are empty are left out, then those that do not fit.
        def columns(cells, widths, width)
          used = TABLE.reject { |one| one.key != "doing" && cells.all? { |row| row[one.key].to_s.empty? } }
          return used unless width

          DISPENSABLE.each do |key|
            break if width - used.sum { |one| one.key == "doing" ? 0 : widths[one.key] } >= DOING

            used = used.reject { |one| one.key == key }
          end
          used
        end

        def cells(role, pairs)
          { **pairs.slice("generation", "pid", "state", "requests", "held"),
            "role" => Board.fit(name(role, pairs), 24), "rate" => pairs["rate"] && format("%.1f", pairs["rate"]),
            "pss" => short(pairs["pss"]), "private" => short(pairs["private"]),
            "doing" => Board.fit(now_doing(pairs), 4096) }
        end

        def short(bytes) = bytes && format("%.1fM", bytes / 1_048_576.0)

        # The time first, because a path may be long.
        def now_doing(pairs)
          work = pairs["running"] ? jobs(pairs) : request(pairs)
          [work, ("not fork-safe" if pairs["unsafe"]),
           ("leaves in #{duration(pairs["drain_left"])}" if pairs["drain_left"])].compact.join("; ")
        end

        def request(pairs)
          return unless pairs["job"]

          beside = " +#{pairs["at_once"] - 1}" if pairs["at_once"].to_i > 1
          "#{format("%.1f", pairs["seconds"].to_f)}s#{beside} #{pairs["job"]}"
        end

        # What is known of one process, and not in its name.
        def facts(pairs)
          known = pairs.except("pool", "slot", "name", "pss", "private", "rate", "held").to_a
          known << ["requests/s", format("%.1f", pairs["rate"])] if pairs["rate"]
          usage = @memory[pairs["pid"]]
          known.concat(%i[pss private rss].map { |key| [key.to_s, mebibytes(usage[key])] }) if usage
          known.map { |key, value| "#{key.tr("_", " ").ljust(14)} #{value}" }
        end
      end
    end
  end
end
