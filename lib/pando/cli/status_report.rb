# frozen_string_literal: true

require "pando/code_bound"
require "pando/mebibytes"
require "pando/sys/memory"
require "pando/sys/special_pages"

module Pando
  module CLI
    # What `pando status` shows: the monitor's records, and the memory of each process, which is read
    # here so that the monitor loses no time over it.
    #
    # @api private
    class StatusReport
      include Mebibytes

      PROCESSES = %w[reactor mold worker service].freeze
      COLUMNS = { "role" => "ROLE", "generation" => "GEN", "pid" => "PID", "state" => "STATE", "requests" => "REQUESTS",
                  "pss" => "PSS", "private" => "PRIVATE", "job" => "" }.freeze
      RIGHT = %w[generation pid requests pss private].freeze
      # Fields that are numbers, so that JSON has them as such.
      WHOLE = %w[pid generation slot requests workers ready reforks failures waiting connections idle accepted mold
                 number rate code kinds cost pss].freeze
      DECIMAL = %w[seconds uptime age faults saving].freeze

      # @param records [Array<Array(String, Hash{String => String})>]
      def initialize(records)
        @records = records.map { |word, pairs| [word, typed(word, pairs)] }
      end

      # @return [String]
      def json
        require "json"
        JSON.pretty_generate(
          "server" => one("server"), "listeners" => all("listener"), "queue" => one("queue"),
          "generations" => all("generation"), "refork" => one("refork"),
          "dampers" => all("damper"), "counts" => one("counts") || {},
          "processes" => processes.map { |role, pairs| { "role" => role, **pairs } }
        )
      end

      # @return [String]
      def text
        [head, *listeners, queue, "", *table, "", *notes].compact.join("\n")
      end

      private

      def typed(word, pairs)
        word == "counts" ? pairs.transform_values(&:to_i) : pairs.to_h { |key, value| [key, number(key, value)] }
      end

      def number(key, value)
        return value.to_i if WHOLE.include?(key) && value.match?(/\A\d+\z/)
        return value.to_f if DECIMAL.include?(key)
        return true if value == "true"

        value
      end

      def all(word) = @records.filter_map { |role, pairs| pairs if role == word }
      def one(word) = all(word).first

      def processes
        @processes ||= [["monitor", one("server").slice("pid", "state")], *children].map do |role, pairs|
          [role, { **pairs, **memory(pairs["pid"]) }]
        end
      end

      def children = @records.filter { |word, _| PROCESSES.any?(word) }

      # Bytes; empty when it has ended, or we are in another namespace.
      def memory(pid)
        usage = Sys::Memory.usage(pid) if pid
        usage ? { "pss" => usage.pss, "private" => usage.private } : {}
      end

      def head
        server = one("server")
        suspended = "; reforking is suspended" if server["suspended"]
        reload = "; a reload is under way" if server["reloading"]
        state = server["state"] == "serving" ? "serving" : "#{server["state"]}, up"
        "pando #{server["version"]}, #{state} for #{duration(server["uptime"])}: " \
          "#{server["ready"]} of #{server["workers"]} workers ready, #{server["reforks"]} reforks#{suspended}#{reload}"
      end

      def duration(seconds)
        minutes, seconds = seconds.to_i.divmod(60)
        hours, minutes = minutes.divmod(60)
        days, hours = hours.divmod(24)
        parts = [[days, "d"], [hours, "h"], [minutes, "min"], [seconds, "s"]].drop_while { |count, _| count.zero? }
        parts.empty? ? "0 s" : parts.first(2).flatten.join(" ")
      end

      def listeners
        all("listener").map do |listener|
          waiting = listener["waiting"]
          "#{listener["listen"]}#{", #{waiting} not accepted yet" if waiting.to_i.positive?}"
        end
      end

      def queue
        return unless (queue = one("queue"))

        "connections: #{queue["connections"]}, idle: #{queue["idle"]}; requests that wait: #{queue["waiting"]}, " \
          "that came so far: #{queue["requests"]}"
      end

      def table
        rows = [COLUMNS, *processes.map { |role, pairs| row(role, pairs) }]
        widths = COLUMNS.keys.to_h { |key| [key, rows.map { |row| row[key].to_s.size }.max] }
        rows.map { |row| COLUMNS.keys.map { |key| cell(key, row[key].to_s, widths[key]) }.join("  ").rstrip }
      end

      def cell(key, text, width) = RIGHT.include?(key) ? text.rjust(width) : text.ljust(width)

      def row(role, pairs)
        job = pairs["job"] && "#{printable(pairs["job"])} for #{pairs["seconds"]} s"
        remarks = { "not fork-safe" => pairs["unsafe"], "trainee" => pairs["trainee"] }.select { |_, said| said }.keys
        { **pairs, "role" => [role, pairs["name"] || pairs["slot"]].compact.join(" "),
                   "pss" => mebibytes(pairs["pss"]), "private" => mebibytes(pairs["private"]),
                   "job" => [job, *remarks].compact.join("; ") }
      end

      # A request's path is the client's: no control character of it reaches a terminal.
      def printable(text) = text.gsub(/[^[:print:]]/, "?")

      def notes
        all("generation").map do |generation|
          proof = "; its canary has served #{generation["proof"]}" if generation["proof"]
          proof ||= "; it is watched, and has served #{generation["watch"]}" if generation["watch"]
          "generation #{generation["number"]} is #{generation["state"]} (#{generation["purpose"]}), " \
            "begun #{duration(generation["age"])} ago#{proof}"
        end.push(*reforking, *dampers, *counts, total, *sizing, *allocator, *pages, *compiler)
      end

      def total = "total PSS #{mebibytes(processes.sum { |_, pairs| pairs["pss"].to_i })}"

      # How it stands with `refork :auto`.
      def reforking
        refork = one("refork") or return
        decided = "; decided last: #{refork["decided"]}" if refork["decided"]
        waits = "; now: #{refork["waits"]}" if refork["waits"]
        printable("refork :auto is #{refork["phase"]}#{decided}#{waits}")
      end

      def dampers
        all("damper").map do |damper|
          place = damper.slice("slot", "name").values.first
          place ||= "of generation #{damper["generation"]}" if damper["generation"]
          waits = ", the next try in #{damper["seconds"]} s" if damper["seconds"].positive?
          "#{[damper["role"], place].compact.join(" ")}: lost #{damper["rate"]} times within a minute#{waits} " \
            "(#{printable(damper["reason"].to_s)})"
        end
      end

      def counts
        counts = one("counts") or return
        "since the start: #{counts.map { |name, number| "#{number} #{name.sub("_", ".")}" }.join(", ")}"
      end

      # Of the molds, for it is they that it is loaded into; read here like their memory.
      def allocator
        pid = all("mold").first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # Where the kernel has given the application huge pages, or merged pages of it.
      def pages
        seen = children.filter_map { |_, pairs| Sys::SpecialPages.of(pairs["pid"]) if pairs["pid"] }
        huge, merged, gain = %i[huge merged gain].map { |name| seen.sum { |one| one[name].to_i } }
        [("huge pages: #{mebibytes(huge)}" if huge.positive?),
         ("merged pages: #{mebibytes(merged)}, saving #{mebibytes(gain)}" if merged.positive?)].compact
      end

      # Of the worker that has compiled most.
      def compiler
        worker = all("worker").max_by { |pairs| pairs["code"].to_i } or return
        bound = CodeBound.of(*worker.values_at("pid", "code"), worker["requests"].to_i)
        "YJIT: #{bound}" if bound
      end

      def sizing
        sizing = one("server")["sizing"]
        "workers :auto (#{sizing})" if sizing
      end
    end
  end
end
