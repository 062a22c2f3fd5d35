# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/wording"

module Pando
  module CLI
    # `pando pages [POOL] [SLOT]`: which memory of a worker is private, its use and its cause. The worker writes its
    # recording to a file that the command has opened, so that neither the monitor nor the worker waits for the command.
    class Pages < ControlCommand
      include Wording

      RECORD = Switch.new(name: :record, flags: %w[--record], argument: "N", type: Types::Whole.new(1..1000),
                          help: "With `pages`: watch the worker's next N requests (up to 1000).").freeze
      # One of these events is the last that a worker causes if it could not record.
      LAST = %w[pages.failed worker.exited worker.lost worker.killed worker.failed].freeze
      # Seconds beyond `--wait`, because the worker may be in the middle of a request.
      GRACE = 30.0

      def self.switches = [*super, RECORD, REPORT, OUTPUT]

      private

      def perform
        prepare
        answer
      end

      def answer
        write_report(report(recording = record))
        reason = recording.facts["cut_short"]
        # The report has been written all the same.
        reason ? report_failure("the recording is incomplete: #{reason}") : CLI::OK
      rescue Pando::Pages::Recording::Broken => e
        reason = said_reason unless recording
        report_failure(reason ? "the worker could not record: #{reason}" : e.message)
      end

      # A worker that cannot write the recording tells the monitor why.
      # @return [String, nil] nil: it has ended
      def said_reason
        asked = { names: "pages.failed,worker.", after: @worker["last_event"] }
        ControlClient.new(path).ask("events", asked, timeout: ANSWER) do |_, event|
          next unless event["pid"] == @worker["pid"] && LAST.include?(event["event"])

          return (event["reason"] if event["event"] == "pages.failed")
        end
        nil
      rescue UsageError, ControlClient::Silent
        nil # the server has ended as well
      end

      # Reports a wrong command line before the server is asked.
      def prepare
        require "pando/pages/report"
        check_output
        slot = words.last unless words.size == 1 && words.first.match?(/\A[a-z]/)
        @pool = words.first if words.size > 1 || slot.nil?
        @slot = slot && whole(slot)
        @jobs = flags[:record] || 0
      end

      def operands = %w[POOL SLOT]

      def whole(text)
        Integer(text, 10, exception: false)&.then { |number| number if number >= 0 } or
          raise UsageError, "pando pages [POOL] [SLOT]: must be a whole number, but is #{text.inspect}."
      end

      def record
        require "tempfile"
        Tempfile.create("pando-pages", anonymous: true) do |file|
          reader, writer = IO.pipe
          ask_worker(file, writer)
          writer.close
          over = wait(reader)
          read(file.tap(&:rewind), over)
        ensure
          [reader, writer].compact.each(&:close)
        end
      end

      def ask_worker(file, progress)
        order = { pool: @pool, slot: @slot, jobs: @jobs, seconds: patience.ceil }
        client = ControlClient.new(path)
        client.ask!("pages", order, timeout: ANSWER, descriptors: [file, progress]) do |name, facts|
          @worker = facts if name == "worker"
        end
      end

      # The worker writes a byte to the pipe after each request, and another one when the recording is over. The pipe
      # ends with the worker, unless a child of the application's holds it open.
      # @return [Boolean] whether it was over in time
      def wait(progress)
        deadline = now + patience + GRACE
        seen = 0
        while progress.wait_readable([deadline - now, 0].max)
          news = progress.read_nonblock(4096)
          progress_to(seen += news.count(Pando::Pages::Recorder::STEP))
          return true if news.include?(Pando::Pages::Recorder::OVER)
        end
        false
      rescue EOFError
        true
      end

      def read(file, over)
        Pando::Pages::Recording.read(file)
      rescue Pando::Pages::Recording::Broken
        raise if over

        raise ControlClient::Silent, "the worker did not answer in time"
      end

      def progress_to(seen)
        terminal.err.print("\r  #{seen} of #{counted(@jobs, "request")}#{"\n" if seen >= @jobs}") if terminal.err.tty?
      end

      def report(recording)
        mold, worker = %w[mold pid].map { |name| @worker[name] && Pando::Pages::Pagemap.of(@worker[name].to_i) }
        pages = Pando::Pages::PrivatePages.new(recording, mold: mold, worker: worker)
        Pando::Pages::Report.write(pages, chosen_format)
      ensure
        [mold, worker].compact.each(&:close)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
