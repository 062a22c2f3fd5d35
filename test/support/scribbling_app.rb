# frozen_string_literal: true

module Support
  # An application that writes to memory that its worker shares with other processes, as far as the kernel lets it, as a
  # crash in a native extension may.
  module ScribblingApp
    TEXT = <<~'RUBY'
      module Shared
        # [name, beginning, length] of each writable shared mapping of this process.
        def self.ranges
          File.foreach("/proc/self/maps").filter_map do |line|
            name = line[/ rw-s .*memfd:(\S+)/, 1] or next
            from, behind = line[/\A\S+/].split("-").map(&:hex)
            [name, from, behind - from]
          end
        end

        def self.write(name, offset, bytes)
          _, from, length = ranges.find { |range| range.first == name }
          File.open("/proc/self/mem", "r+b") { |memory| memory.pwrite(bytes[0, length - offset], from + offset) }
        end
      end

      # Another defect of a worker: it is alive, but takes no requests.
      $taking = true # rubocop:disable Style/GlobalVars
      Pando::HTTP::Lane.prepend(Module.new { def take(buffer) = $taking && super })

      run lambda { |env|
        case env["PATH_INFO"]
        when "/writable"
          next [200, {}, [Shared.ranges.map { |name, _, length| "#{name} #{length}" }.join("\n")]]
        when "/scribble" # the mapping, the position, and the bytes
          name, offset, hex = env["QUERY_STRING"].split("&")
          Shared.write(name, offset.to_i, [hex].pack("H*"))
        when "/scribbles" # random bytes in the whole mapping
          random = Random.new(env["QUERY_STRING"].to_i)
          Shared.ranges.each do |name, _, length|
            random.rand(1..50).times { Shared.write(name, random.rand(length - 8), random.bytes(8)) }
          end
        when "/page" # a random page of each mapping
          random = Random.new(env["QUERY_STRING"].to_i)
          Shared.ranges.each { |name, _, length| Shared.write(name, random.rand(length / 4096) * 4096, random.bytes(4096)) }
        when "/flood" # the whole mapping
          Shared.ranges.each { |name, _, length| Shared.write(name, 0, env["QUERY_STRING"].to_i.chr.b * length) }
        when "/refuse"
          $taking = false
        end
        [200, { "content-type" => "text/plain" }, ["pid #{Process.pid}"]]
      }
    RUBY
  end
end
