# frozen_string_literal: true

require "support/connections"
require "support/live/section"
require "support/load"

module Bench
  module Live
    # WebSockets of an app's own, held in one worker, while the other pool is reforked, everything is reloaded, requests
    # go on, and clients come and go.
    class Sockets < Section
      KIND = "echo"
      PATH = "/ws"
      WEB_WORKERS = 2
      SERVES = 2 # clients of web
      PAUSE = 0.02 # seconds between two requests
      POOL = /\Apando live \d+ gen \d+/
      REST = 100 # milliseconds between two turns
      SOME = 20 # with so many something is done in each turn
      NEWCOMERS = 3 # so many are opened in each turn, and one less closed
      SERVER_STOPS = "1001"
      STATUS_WITHIN = 20 # seconds until the workers have reported the last change

      def call
        serve(app, config, workers: WEB_WORKERS, environment: environment) do |server|
          Connections.run(server.port, count: count * 3 / 2, kind: self.class::KIND, path: self.class::PATH,
                                       hosts: @options.hosts) do |connections|
            @connections = connections
            measure(server)
          end
        end
        self
      end

      # @return [Hash{String => Boolean}]
      def targets
        { "#{@held[:ended]} disconnected, 0" => @held[:ended].zero? && @held[:open] == @wanted,
          "#{@stopped[:wrong]} wrong frames, 0" => @stopped[:wrong].zero?,
          "#{@unanswered} messages or handshakes without the right answer, 0" => @unanswered.zero?,
          "#{@requests[:failed]} failed requests, 0" => @requests[:failed].zero?,
          "pando status counts #{@counted.values.sum} connections, #{@held[:open]}" => @counted == @held[:workers],
          "#{parted} of #{@held[:open]} told that the server stops" => parted == @held[:open] }
      end

      def to_h
        { count: count, held: @held, stopped: @stopped, unanswered: @unanswered, opened: @opened, requests: @requests,
          failures: @failures, bytes: @bytes, seconds: @seconds, homes: @homes, counted: @counted, renewals: @renewals,
          targets: targets }
      end

      private

      def app = "echo.ru"
      def environment = {}
      def count = @options.sockets

      def config
        drain = ", drain: #{@options.drain}" if @options.drain.positive?
        "pool :live, paths: [\"#{self.class::PATH}\"], workers: 1, threads: 16, refork: false#{drain}\n"
      end

      def measure(server)
        @opened = @unanswered = @wanted = 0
        @seconds = {}
        fill(server)
        under_load(server) { renew(server) }
        everybody
        @held = @connections.report
        @homes = homes(server)
        @counted = counted(server)
        stop(server)
      end

      # Opens all, and finds out what they take.
      def fill(server)
        progress("#{count} connections")
        before = weigh(server)
        began = now
        welcome(count)
        @seconds[:opening] = now - began
        fresh = weigh(server)
        everybody
        used = weigh(server)
        @bytes = { live: [fresh[:live] - before[:live], used[:live] - before[:live]],
                   reactor: [fresh[:reactor] - before[:reactor], used[:reactor] - before[:reactor]] }
      end

      def weigh(server) = { live: server.pss(POOL), reactor: server.pss(Server::REACTOR) }

      # The renewals one after another, and meanwhile a turn of the clients after the other.
      def renew(server)
        @renewals = []
        thread = Thread.new do
          orders.each do |words|
            progress("pando #{words.join(" ")}, #{@renewals.size + 1} of #{orders.size}")
            began = now
            server.pando(*words)
            @renewals << [words.join(" "), now - began]
          end
        end
        turn while thread.alive?
        thread.join
        turn
      end

      def orders = ([%w[refork web]] * @options.reforks) + ([["reload"]] * @options.reloads)

      def turn
        welcome(NEWCOMERS)
        some = [SOME, @wanted].min
        converse(some)
        expect(some) { |number| @connections.ping(number) }
        gone = NEWCOMERS - 1
        expect(gone) { |number| @connections.close(number) }
        @wanted -= gone
        @connections.watch(REST)
      end

      def welcome(number)
        expect(number) { |all| @connections.open(all) }
        @opened += number
        @wanted += number
      end

      def converse(number) = expect(number) { |all| @connections.ask(all) }
      def everybody = converse(@wanted)

      def expect(number)
        @unanswered += number - yield(number)
      end

      # Requests to the other pool while the block runs.
      def under_load(server)
        done = false
        load = Thread.new { requests(server) { done } }
        yield
      ensure
        done = true
        result = load.value
        @requests = { answered: result.requests, failed: result.failures.size, workers: result.workers.size }
        @failures = result.failures.first(5)
      end

      def requests(server)
        Load.new(server.port, clients: SERVES).run(at_most: Float::INFINITY, seconds: Float::INFINITY) do
          sleep(PAUSE)
          yield
        end
      end

      # @return [Array<String>] each process that has connections: its title, and their number
      def homes(server)
        titles = server.workers(POOL)
        @held[:workers].map { |pid, number| "#{number} in #{titles.fetch(pid, "?").delete_prefix("pando ")}" }
      end

      # What `pando status` says, once it is what the clients know.
      def counted(server)
        ends_at = now + STATUS_WITHIN
        found = server.connections
        found = server.connections until found == @held[:workers] || now > ends_at
        found
      end

      def stop(server)
        progress("stop")
        began = now
        server.leave
        @parted = @connections.part
        @seconds[:stopping] = now - began
        @stopped = @connections.report
      end

      # Those that were told at the end that the server stops.
      def parted = @stopped[:codes].fetch(SERVER_STOPS, 0)

      def title
        "#{count} WebSockets (#{self.class::KIND}) in one worker, #{@options.reforks} reforks of web, " \
          "#{@options.reloads} reloads, drain #{@options.drain}"
      end

      def head = ["", ""]

      def rows
        [["connections opened, and open at the end", "#{@opened}, #{@held[:open]} of #{@wanted}"],
         ["disconnected", "#{@held[:ended]}, #{@held[:cut]} of them without a close frame"],
         ["wrong frames, of so many messages", "#{@stopped[:wrong]} of #{@held[:messages]}"],
         ["without the right answer", @unanswered.to_s],
         ["requests to web failed", "#{@requests[:failed]} of #{@requests[:answered] + @requests[:failed]}"],
         ["workers of web that answered", @requests[:workers].to_s],
         ["KiB a connection, live worker: opened, used", kib(:live)],
         ["KiB a connection, reactor: opened, used", kib(:reactor)],
         ["seconds to open all", format("%.1f", @seconds[:opening])],
         *@homes.map { |words| ["connections at the end", words] },
         ["stop: close codes", @stopped[:codes].map { |code, number| "#{number} x #{code}" }.join(", ")],
         ["stop: seconds until all had ended", @parted ? format("%.1f", @seconds[:stopping]) : "not all have"]]
      end

      def kib(field) = @bytes[field].map { |bytes| format("%.2f", bytes / KIB / count) }.join(", ")
    end
  end
end
