# frozen_string_literal: true

require "json"

module Pando
  module Testing
    class Strict
      # The process that runs one test before the heir does, and then exits. The heir sends it one line per command.
      class Twin
        # @param rehearsal [Proc] runs the test; returns an error message or nil
        def initialize(channel, rehearsal)
          @channel = channel
          @rehearsal = rehearsal
        end

        def live
          Pando.keep_io(@channel)
          tell(pid: Process.pid)
          [$stdout, $stderr].each { |io| io.reopen(File::NULL, "w") }
          yield
          obey { { wrong: @rehearsal.call } }
          obey { { deleted: Exits.run } }
          nil
        end

        private

        def obey
          @channel.gets or exit!(0) # the heir has ended
          tell(yield)
        rescue Exception => error # rubocop:disable Lint/RescueException
          tell(wrong: "#{error.class}: #{error.message}")
          exit!(1)
        end

        def tell(facts) = @channel.puts(JSON.generate(facts))

        # The heir's handle on the twin.
        class Handle
          def initialize(channel, patience)
            @channel = channel
            @patience = patience
          end

          def rehearse
            @pid = answer&.fetch("pid")
            facts = ask("rehearse")
            return [stuck] unless facts

            facts["wrong"] ? [failed(facts["wrong"])] : []
          end

          def leave
            facts = ask("leave") || {}
            @channel.close
            facts.fetch("deleted", []).map { |path, site| deleted(path, site) }
          end

          private

          def ask(what)
            @channel.puts(what)
            answer
          rescue SystemCallError, IOError
            nil # it has ended
          end

          def answer
            line = @channel.wait_readable(@patience) && @channel.gets
            line ? JSON.parse(line) : kill
          end

          def kill
            Process.kill(:KILL, @pid) if @pid
            nil
          rescue Errno::ESRCH
            nil
          end

          def failed(message)
            ForkSafety::Finding.new(:twin_failed, subject: "test", message:
              "The next test fails in a second process forked from the same parent: #{message}")
          end

          def stuck
            ForkSafety::Finding.new(:twin_failed, subject: "test", message:
              "The next test did not end in a second process forked from the same parent " \
              "(within #{@patience.round} s, or it crashed).")
          end

          def deleted(path, site)
            ForkSafety::Finding.new(:file_deleted, subject: File.basename(path), location: site, message:
              "A second process deleted #{path} when it ended, although another process had made the file.")
          end
        end
      end
    end
  end
end
