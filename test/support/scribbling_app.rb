# frozen_string_literal: true

module Support
  # An application that writes where it must not, as a crash in a C extension may: into what its worker shares with the
  # other processes, as far as the kernel lets it.
  module ScribblingApp
    TEXT = <<~'RUBY'
      module Shared
        # [beginning, length] of each mapping of that name which this process may write.
        def self.ranges(name)
          File.foreach("/proc/self/maps").filter_map do |line|
            next unless line.match?(/ rw-s .*memfd:#{name}\b/)

            from, to = line[/\A\S+/].split("-").map(&:hex)
            [from, to - from]
          end
        end

        def self.write(name, offset, bytes)
          first, = ranges(name).first
          File.open("/proc/self/mem", "r+b") { |memory| memory.pwrite(bytes, first + offset) }
        end
      end

      # What else may go wrong in a worker: it lives, and takes no request.
      $taking = true # rubocop:disable Style/GlobalVars
      Pando::HTTP::Lane.prepend(Module.new { def take(buffer) = $taking && super })

      run lambda { |env|
        case env["PATH_INFO"]
        when "/scribble" # the mapping, where in it, and which bytes
          name, offset, hex = env["QUERY_STRING"].split("&")
          Shared.write(name, offset.to_i, [hex].pack("H*"))
        when "/refuse"
          $taking = false
        when "/held"
          sleep 0.005 until File.exist?("go")
        end
        [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
      }
    RUBY
  end
end
