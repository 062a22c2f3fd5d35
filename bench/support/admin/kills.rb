# frozen_string_literal: true

require "support/admin/section"
require "support/open_load"
require "support/statistics"

module Bench
  module Admin
    # SIGKILL for the admin process, again and again under load: requests that are lost, and how long nothing answers at
    # the admin address.
    class Kills < Section
      WORKERS = 2
      LONGEST = 2.0 # seconds
      PAUSE = 1.0 # between its return and the next kill
      PATIENCE = 30 # seconds

      def call
        serve("waiting.ru", admin, workers: WORKERS) do |server|
          load = Thread.new { requests.run(server.port) }
          @absences = Array.new(@options.kills) { |number| absence(server, number).tap { sleep PAUSE } }
          @load = load.value
        end
        self
      end

      def targets
        lost = @load.failed + @load.unanswered
        { "#{lost} of #{@load.sent} requests lost, 0" => lost.zero?,
          "longest absence #{@absences.max.round(2)} s, at most #{LONGEST}" => @absences.max <= LONGEST }
      end

      def to_h = { absences: @absences, sent: @load.sent, lost: @load.failed + @load.unanswered, targets: targets }

      private

      def requests
        OpenLoad.new(connections: 8, rate: @options.rate, seconds: duration, fast: "/fast", slow_share: 0, drain: 5)
      end

      # Most of the kills fall into the load.
      def duration = (@options.kills * (PAUSE + 0.5)).ceil

      # @return [Float] seconds from the kill to an answer
      def absence(server, number)
        progress("kill #{number + 1}")
        pid = nil
        server.wait_for("an admin process") { pid = server.pids_of(ADMIN).first }
        began = now
        Process.kill(:KILL, pid)
        begin
          get("/livez")
        rescue SystemCallError, IOError, Timeout::Error # of the dead one
          raise Server::Failed, "nothing answers" if now > began + PATIENCE

          retry
        end
        now - began
      end

      def title
        "#{@options.kills} times SIGKILL for the admin process, #{@options.rate} requests/s, seconds until it answers"
      end

      def head = ["", "median", "longest", "requests", "lost"]

      def rows
        [["admin process", format("%.2f", Statistics.median(@absences)), format("%.2f", @absences.max),
          @load.sent.to_s, (@load.failed + @load.unanswered).to_s]]
      end
    end
  end
end
