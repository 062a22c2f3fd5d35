# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Descriptors that live processes share.
      #
      # @api private
      class Descriptors < Check
        EVENT_SOURCES = { "[eventpoll]" => "an epoll instance", "[eventfd]" => "an eventfd", "[timerfd]" => "a timerfd",
                          "[signalfd]" => "a signalfd", "[io_uring]" => "an io_uring",
                          "inotify" => "an inotify instance", "[fanotify]" => "a fanotify group" }.freeze
        ANONYMOUS = "anon_inode:"

        def findings
          found = evidence.generations.flat_map { |generation| generation.shared.map { |one| judge(one) } }
          found.compact.uniq { |one| [one.kind, one.subject, one.location] }
        end

        private

        def judge(shared)
          link = shared.open.link
          return event_source(shared, link.delete_prefix(ANONYMOUS)) if link.start_with?(ANONYMOUS)
          return socket(shared) if link.start_with?("socket:")
          return pipe(shared) if link.start_with?("pipe:")

          file(shared) if shared.open.regular?
        end

        def event_source(shared, what)
          name = EVENT_SOURCES[what] or return
          report(:shared_event_source, shared, name, "#{name} is open in #{who(shared)}")
        end

        def socket(shared)
          socket = shared.socket
          return if socket.nil? || socket.kind == :idle || shared.io&.fetch(:ended)

          name = [shared.io ? shared.io[:type] : "a socket", ("to #{socket.peer}" if socket.peer)].compact.join(" ")
          case socket.kind
          when :listener
            name = "a socket that listens on #{socket.peer}"
            report(:shared_listener, shared, name, "#{name} is open in #{who(shared)}")
          when :datagram then report(:shared_datagram, shared, name, "#{name} is open in #{who(shared)}")
          else connection(shared, name)
          end
        end

        def connection(shared, name)
          tls = shared.io&.fetch(:tls)
          report(tls ? :shared_tls : :shared_socket, shared, name,
                 "the connection of #{name}#{" with its TLS session" if tls} is open in #{who(shared)}")
        end

        def pipe(shared)
          if shared.helper
            name = "a pipe to the helper #{shared.helper}"
            return report(:shared_helper, shared, name, "#{name} is open in #{who(shared)}")
          end

          report(:shared_pipe, shared, "a pipe", "a pipe is open in #{who(shared)}")
        end

        def file(shared)
          open = shared.open
          name = "file #{File.basename(open.link.delete_suffix(" (deleted)"))}"
          return report(:inherited_lock, shared, name, "#{name} is locked by flock in #{who(shared)}") if open.locked?
          return if open.append?
          return shared_file(shared, name) if shared.movers.zero?

          report(:shared_position, shared, name,
                 "#{name} is open in #{who(shared)}, and #{shared.movers} of the workers moved its one position")
        end

        def shared_file(shared, name) = report(:shared_file, shared, name, "#{name} is open in #{who(shared)}")

        def who(shared) = "#{shared.holders.size} live processes (#{shared.holders.map(&:title).join(", ")})"

        def report(kind, shared, subject, message)
          finding(kind, subject: subject, message: message, location: shared.location(evidence),
                        details: { processes: shared.holders.map(&:title), descriptor: shared.open.number })
        end
      end
    end
  end
end
