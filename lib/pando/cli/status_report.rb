# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/code_bound"
require "pando/sys/memory"
require "pando/wording"

module Pando
  module CLI
    # The output of `pando status`: the monitor's records, and the memory of each process. This command reads the
    # memory itself, so that the monitor loses no time.
    class StatusReport
      include Wording

      PROCESSES = %w[reactor mold worker service admin].freeze
      COLUMNS = { "role" => "ROLE", "generation" => "GEN", "pid" => "PID", "state" => "STATE", "requests" => "REQUESTS",
                  "pss" => "PSS", "private" => "PRIVATE", "job" => "" }.freeze
      RIGHT = %w[generation pid requests pss private].freeze
      STANDINGS = { "proof" => "its canary has served %s", "watch" => "Pando watches it; it has served %s",
                    "unproven" => "unproven: %s", "released" => "its mold was released",
                    "waits" => "its canary must show %s" }.freeze
      BUFFERS = %w[heads bodies responses spooled_bodies spooled_responses].freeze
      # Of the application, in its folder: Capistrano and others write it.
      REVISION = "REVISION"
      # Bytes of its line.
      LONGEST = 64

      # @param memory [#call] gives the memory of a process by its pid
      def initialize(records, memory: Sys::Memory.method(:usage))
        @records = records.map { |word, pairs| [word, Cluster::Control::Line.typed(pairs)] }
        @memory = memory
      end

      def json
        require "json"
        JSON.pretty_generate(to_h, ascii_only: true)
      end

      def to_h
        {
          "server" => one("server"), **pools, "listeners" => all("listener"), "queue" => one("queue"),
          "generations" => generations_with_release, "refork" => one("refork"),
          "leaks" => all("leak"),
          "lost_threads" => all("lost_thread"), "changed_states" => all("changed_state"),
          "refused_paths" => all("refused_path"), "throttled_restarts" => all("throttle"),
          "counts" => one("counts") || {},
          "processes" => processes.map { |role, pairs| { "role" => role, **pairs } }
        }
      end

      def text
        [head, *listeners, queue, buffers, *pool_lines, "", *table, "", *notes].compact.join("\n")
      end

      private

      def all(word) = @records.filter_map { |role, pairs| pairs if role == word }
      def one(word) = all(word).first

      def generations_with_release
        all("generation").map do |one|
          place = one.values_at("number", "pool")
          members = children.map(&:last).select { |pairs| pairs.values_at("generation", "pool") == place }
          release = release_of(one["mold"] || members.filter_map { |pairs| pairs["pid"] }.first)
          release ? { **one, "release" => release } : one
        end
      end

      # The folder that a process works in, as the kernel sees it, and the first line of the file REVISION there.
      # @return [String, nil] nil: there is no such process, or it may not be looked into
      def release_of(pid)
        folder = File.readlink("/proc/#{pid}/cwd").force_encoding("UTF-8").scrub("?") if pid
        folder && [folder, revision(pid)].compact.join(" at ")
      rescue SystemCallError
        nil
      end

      # In the file system of the process, which may be another one.
      def revision(pid)
        text = File.open("/proc/#{pid}/cwd/#{REVISION}", File::RDONLY | File::NONBLOCK) { |file| file.read(LONGEST) }
        line = text.to_s.lines.first.to_s.force_encoding("UTF-8").scrub("?").gsub(/[^[:print:]]/, "").strip
        line unless line.empty?
      rescue SystemCallError
        nil
      end

      def processes
        @processes ||= [["monitor", one("server").slice("pid", "state")], *children].map do |role, pairs|
          [role, { **pairs, **memory(pairs["pid"]) }]
        end
      end

      def children = @records.filter { |word, _| PROCESSES.any?(word) }

      # Bytes. Empty if the process has ended or lives in another namespace.
      def memory(pid)
        usage = @memory.call(pid) if pid
        usage ? { "pss" => usage.pss, "private" => usage.private } : {}
      end

      def head
        server = one("server")
        suspended = "; reforking is suspended" if server["suspended"]
        reload = "; a reload is in progress" if server["reloading"]
        quiet = "; job nodes take no new jobs" if server["quiet"]
        state = server["state"] == "serving" ? "serving" : "#{server["state"]}, up"
        "pando #{server["version"]}, #{state} for #{duration(server["uptime"])}: " \
          "#{strengths(server)}, #{reforks(server)}#{suspended}#{reload}#{quiet}"
      end

      # The count restarts with each cold boot, for instance at a reload.
      def reforks(pairs) = "#{counted(pairs["reforks"], "refork")} since the last cold boot"

      # Counts workers that serve requests and nodes that run jobs separately.
      def strengths(server)
        kinds = all("pool").group_by { |pool| pool["kind"] || "worker" }
        return strength(server, kinds.keys.first || "worker") if kinds.size < 2

        kinds.map do |kind, pools|
          strength(%w[workers ready].to_h { |key| [key, pools.sum { |one| one[key].to_i }] }, kind)
        end.join(", ")
      end

      # A canary serves in addition to the wanted number.
      def strength(pairs, kind)
        wanted, ready = pairs.values_at("workers", "ready").map(&:to_i)
        more = " and #{ready - wanted} more" if ready > wanted
        threads = " with #{pairs["threads"]} threads each" if pairs["threads"]
        "#{[ready, wanted].min} of #{counted(wanted, kind)}#{threads}#{more} ready"
      end

      def duration(seconds)
        minutes, seconds = seconds.to_i.divmod(60)
        hours, minutes = minutes.divmod(60)
        days, hours = hours.divmod(24)
        parts = [[days, "d"], [hours, "h"], [minutes, "min"], [seconds, "s"]].drop_while { |count, _| count.zero? }
        parts.empty? ? "0 s" : parts.first(2).flatten.join(" ")
      end

      def pools
        found = all("pool").map do |pool|
          refork = all("refork").find { |one| one["pool"] == pool["name"] }
          refork ? { **pool, "refork" => refork } : pool
        end
        found.any? ? { "pools" => found } : {}
      end

      # A single pool is described by the first line.
      def pool_lines
        return [] if all("pool").one?

        all("pool").map do |pool|
          suspended = "; reforking is suspended" if pool["suspended"]
          queued = "#{counted(pool["queued"], "request")} queued, " if pool["queued"]
          "#{pool["name"]}: #{strength(pool, pool["kind"] || "worker")}, #{queued}#{connections(pool)}" \
            "#{reforks(pool)}#{suspended}"
        end
      end

      # WebSockets and streams.
      def connections(pool)
        return unless pool["live_connections"]

        leaving = " (#{pool["leaving_connections"]} in leaving workers)" if pool["leaving_connections"]
        "#{counted(pool["live_connections"], "live connection")}#{leaving}, "
      end

      def of(pairs) = (" of #{pairs["pool"]}" if pairs["pool"])

      def listeners
        all("listener").map do |listener|
          waiting = listener["waiting"]
          "#{listener["listen"]}#{", #{waiting} not accepted yet" if waiting.to_i.positive?}"
        end
      end

      def notes
        generations_with_release.map do |generation|
          "generation #{generation["number"]}#{of(generation)} is #{generation["state"]} (#{generation["purpose"]}), " \
            "started #{duration(generation["age"])} ago#{standing(generation)}" \
            "#{"; it runs #{printable(generation["release"])}" if generation["release"]}"
        end.push(*reforking, *leaks, *lost_threads, *changed_states, *refused_paths, *throttled_restarts, *counts,
                 total, *sizing, *sharing)
      end

      def standing(one) = STANDINGS.map { |key, text| "; #{text.sub("%s") { one[key] }}" if one[key] }.join

      def total = "total PSS #{mebibytes(processes.sum { |_, pairs| pairs["pss"].to_i })}"

      def throttled_restarts
        all("throttle").map do |throttle|
          place = throttle.slice("slot", "name").values.first
          place ||= "of generation #{throttle["generation"]}" if throttle["generation"]
          waits = ", next attempt in #{throttle["seconds"]} s" if throttle["seconds"].positive?
          lost = "lost #{counted(throttle["rate"], "time")} within a minute"
          "#{[throttle["role"], place].compact.join(" ")}#{of(throttle)}: #{lost}#{waits} " \
            "(#{printable(throttle["reason"].to_s)})"
        end
      end

      def refused_paths
        all("refused_path").map do |one|
          printable("#{one["request"]}#{of(one)} gets 503 for #{one["seconds"].ceil} s more, because it has " \
                    "killed workers")
        end
      end

      def counts
        counts = one("counts") or return
        "since the server started: #{counts.map { |name, number| "#{number} #{name.sub("_", ".")}" }.join(", ")}"
      end

      def sizing
        sizing = one("server")["sizing"]
        "workers :auto (#{sizing})" if sizing
      end

      def table
        rows = [COLUMNS, *processes.map { |role, pairs| row(role, pairs) }]
        widths = COLUMNS.keys.to_h { |key| [key, rows.map { |row| row[key].to_s.size }.max] }
        rows.map { |row| COLUMNS.keys.map { |key| cell(key, row[key].to_s, widths[key]) }.join("  ").rstrip }
      end

      def cell(key, text, width) = RIGHT.include?(key) ? text.rjust(width) : text.ljust(width)

      def row(role, pairs)
        remarks = [*held(pairs), ("not fork-safe" if pairs["unsafe"])].compact
        role = "node" if pairs["running"]
        { **pairs, "role" => [pairs["pool"], role, pairs["name"] || pairs["slot"]].compact.join(" "),
                   "pss" => mebibytes(pairs["pss"]), "private" => mebibytes(pairs["private"]),
                   "job" => [*doing(pairs), *remarks].join("; ") }
      end

      # WebSockets and other connections that the application has taken over, and streams.
      def held(pairs)
        counts = %w[connection stream].filter_map do |kind|
          counted(pairs["#{kind}s"], kind) if pairs["#{kind}s"]
        end
        counts << "leaves in #{duration(pairs["drain_left"])} at the latest" if pairs["drain_left"]
        counts
      end

      # The current request, or the numbers of jobs.
      def doing(pairs)
        return jobs(pairs) if pairs["running"]

        return unless pairs["job"]

        beside = ", and #{pairs["at_once"] - 1} more" if pairs["at_once"].to_i > 1
        waited = " (#{pairs["lock_wait"]} s of it waiting for the interpreter lock)" if pairs["lock_wait"]
        "#{printable(pairs["job"])} for #{pairs["seconds"]} s#{waited}#{beside}"
      end

      def jobs(pairs)
        facts = { "running" => pairs["running"], "failed" => pairs["failed"], "waiting" => pairs["lag"].to_i }
        said = facts.select { |_, number| number.positive? }.map { |what, number| "#{number} #{what}" }.join(", ")
        said += ", the oldest for #{pairs["latency"].round(1)} s" if pairs["lag"].to_i.positive? && pairs["latency"]
        said.empty? ? nil : said
      end

      # A request's path comes from the client, so no control character in it may reach the terminal.
      def printable(text) = text.gsub(/[^[:print:]]/, "?")

      def queue
        return unless (queue = one("queue"))

        held = " (#{queue["set_aside"]} of them held back for slow readers)" if queue["set_aside"].to_i.positive?
        "connections: #{queue["connections"]}, idle: #{queue["idle"]}; requests queued: #{queue["waiting"]}" \
          "#{held}, total: #{queue["requests"]}"
      end

      # nil if the server is older than this command.
      def buffers
        kinds = one("queue")&.slice(*BUFFERS)
        return unless kinds&.size == BUFFERS.size

        heads, bodies, answers, *spooled = kinds.values_at(*BUFFERS).map { |bytes| format("%.1f", bytes / (1024.0**2)) }
        "buffers in MiB: heads #{heads}, bodies #{bodies}, responses #{answers}; " \
          "in the spool: bodies #{spooled.first}, responses #{spooled.last}"
      end

      # The state of `refork :auto`.
      def reforking
        all("refork").map do |refork|
          decided = "; last decision: #{refork["decided"]}" if refork["decided"]
          waits = "; now: #{refork["waits"]}" if refork["waits"]
          prefer = ", prefer: :#{refork["prefer"]}," unless [nil, "balanced"].include?(refork["prefer"])
          printable("refork :auto#{of(refork)}#{prefer} is #{refork["phase"]}#{decided}#{waits}")
        end
      end

      # Memory that each mold inherits and hands down.
      def leaks
        all("leak").map do |leak|
          waits = "; no cold boot: #{leak["waits"]}" if leak["waits"]
          printable("each request#{of(leak)} leaks #{(leak["rate"] / 1024.0).round(1)} KiB that molds hand down: " \
                    "#{mebibytes(leak["before"])} after #{leak["after"]} requests, #{mebibytes(leak["bytes"])} after " \
                    "#{leak["requests"]}#{waits}")
        end
      end

      # Why Pando refuses to refork, in the words of `pando refork`.
      def lost_threads
        all("lost_thread").map do |one|
          scope = "no refork from #{one["held"]} of #{counted(one["workers"], "worker")}#{of(one)}" if one["refused"]
          printable("#{scope || "lost thread#{of(one)}"}: #{one["reason"]}. #{one["advice"]}")
        end
      end

      # Why Pando refuses to refork from these workers.
      def changed_states
        all("changed_state").map { |one| printable("no refork from worker #{one["slot"]}#{of(one)}: #{one["reason"]}") }
      end

      def sharing = [allocator, compiler, collections].compact

      # Molds load it and workers inherit it, so it shows in the memory maps of either.
      def allocator
        pid = [*all("mold"), *all("worker")].first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # For the worker that has compiled most.
      def compiler
        worker = all("worker").max_by { |pairs| pairs["code"].to_i } or return
        bound = CodeBound.of(*worker.values_at("pid", "code"), worker["requests"].to_i)
        "YJIT: #{bound}" if bound
      end

      # For the current workers.
      def collections
        workers = all("worker")
        made = workers.sum { |pairs| pairs["full"].to_i }
        due = workers.count { |pairs| pairs["major_gc_due"] }
        wait = "; #{counted(due, "worker")} to be replaced instead of running one" if due.positive?
        "major GCs: #{made} in #{counted(workers.size, "worker")}#{wait}" if made.positive? || due.positive?
      end
    end
  end
end
