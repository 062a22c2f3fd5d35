# frozen_string_literal: true

require "pando/cli/control_client"
require "pando/sys"
require "socket"

module Pando
  module Admin
    # The monitor, as the admin process and services see it: a client of the control protocol opens a connection for
    # each command. No path is needed for that: one end of a new pair of sockets travels over the link that the monitor
    # has made.
    class Monitor
      # The monitor does not answer, or there are too many commands.
      class Unavailable < Pando::Error; end

      # It does answer: there is nothing to show.
      class Refused < Unavailable; end

      # Seconds for the answer to a question, and during which an answer is used again.
      ANSWER = 5.0
      FRESH = 1.0
      # Commands at a time. Each is one of the monitor's sessions.
      COMMANDS = 6

      # @yieldparam socket [UNIXSocket] which is to be sent to the monitor
      def initialize(&introduce)
        @introduce = introduce
        @asking = Mutex.new
        @counting = Mutex.new
        @commands = 0
        @snapshots = {}
      end

      # The state of the server. Several that ask within a second get the same, also if there is no answer.
      # @param word [String] "figures", for metrics, "status", with each process, or "slow", the last slow requests
      def snapshot(word = "figures", fresh: FRESH)
        began_at = Sys.now
        @asking.synchronize do
          known = @snapshots[word]
          return known if known && Sys.now - known.taken_at < fresh
          raise Unavailable, @failure if @failed_at && @failed_at >= began_at

          @snapshots[word] = ask(word)
        end
      end

      # Gives the monitor a command and waits for its outcome.
      # @yieldparam word [String] @yieldparam pairs [Hash{String => String}] of each record before it
      # @return [Array(String, Hash{String => String})] "ok" and text, or "failed" and reason
      def command(word, pairs, timeout)
        count { client.ask(word, pairs, timeout: timeout) { |*record| yield(*record) if block_given? } }
      rescue CLI::ControlClient::Silent, SystemCallError => e
        raise Unavailable, "#{e.message}; the server may still be working on the command: see /status.json"
      ensure
        @asking.synchronize { @snapshots.clear } # what it has changed is shown at once
      end

      # Yields each record about events until the monitor ends.
      # @param after [Integer] the number of the last known event; 0: none
      # @raise [CLI::ControlClient::Silent, SystemCallError]
      def follow(after, &block) = client.ask("events", { after: after }, &block)

      private

      def ask(word)
        records = []
        outcome, said = client.ask(word, timeout: ANSWER) { |*record| records << record }
        raise Refused, said["reason"].to_s if outcome == "failed"

        Snapshot.new(records)
      rescue CLI::ControlClient::Silent, SystemCallError => e
        @failed_at = Sys.now
        raise Unavailable, @failure = "the monitor does not answer: #{e.message}"
      end

      # The monitor gets its end when the command is in it already: then it need not wait for it.
      # @return [CLI::ControlClient] for one command, which closes its end
      def client
        ours, theirs = UNIXSocket.pair
        CLI::ControlClient.new("the monitor", ours) do
          @introduce.call(theirs)
        ensure
          theirs.close
        end
      end

      def count
        @counting.synchronize do
          raise Unavailable, "#{COMMANDS} commands are under way: wait for their end" if @commands >= COMMANDS

          @commands += 1
        end
        begin
          yield
        ensure
          @counting.synchronize { @commands -= 1 }
        end
      end
    end

    # The monitor's records of one moment. Shared by threads, and never changed.
    class Snapshot
      # @return [Array<Array(String, Hash{String => String})>] as they came
      attr_reader :records
      # @return [Float] on Sys.now
      attr_reader :taken_at

      def initialize(records)
        @records = records
        @taken_at = Sys.now
        @typed = records.map { |word, pairs| [word, Cluster::Control::Line.typed(pairs)] }.group_by(&:first)
                        .transform_values { |all| all.map(&:last) }
      end

      def all(word) = @typed.fetch(word, [])
      def one(word) = all(word).first

      # Whether requests are welcome here. The first pool of workers has the clients; job nodes alone have none.
      # @return [String, nil] why not; nil: they are
      def obstacle
        server = one("server")
        return "the server is #{server["state"]}" unless server["state"] == "serving"

        pool = all("pool").find { |one| one["kind"] == "worker" }
        "no worker is ready" unless (pool || server)["ready"].to_i.positive?
      end

      # @return [Array<Array(String, String, Integer)>] role, pool (nil: the only one, or none) and pid of each process
      def processes
        children = all("pids").flat_map do |one|
          one["pids"].to_s.split(",").map { |pid| [one["role"], one["pool"], pid.to_i] }
        end
        [["monitor", nil, one("server")["pid"]], *children]
      end

      # @return [Hash{Array(String, Integer) => Array<Integer>}] the pids of molds and workers by pool and generation
      def generations
        all("pids").select { |one| one["generation"] }.group_by { |one| one.values_at("pool", "generation") }
                   .transform_values { |all| all.flat_map { |one| one["pids"].to_s.split(",").map(&:to_i) } }
      end

      # @return [Hash{String => String}] the kind of each pool: node or worker
      def kinds = all("pool").to_h { |pool| [pool["name"], pool["kind"]] }
    end
  end
end
