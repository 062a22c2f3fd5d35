# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Descriptors that live processes share. It is an error if several processes use one, because they take each
      # other's bytes, and a warning if it is only open in them: the requests did not show whether it will be used.
      class Descriptors < Check
        EVENT_SOURCES = { "[eventpoll]" => "an epoll instance", "[eventfd]" => "an eventfd", "[timerfd]" => "a timerfd",
                          "[signalfd]" => "a signalfd", "[io_uring]" => "an io_uring",
                          "inotify" => "an inotify instance", "[fanotify]" => "a fanotify group" }.freeze
        ANONYMOUS = "anon_inode:"
        HELD = "Nothing, if its library replaces an inherited connection before it uses it. Otherwise close it in " \
               "before_fork, or open it in after_worker_fork."
        REPLACED = "Nothing: each process opens its own when it next needs one."

        def findings
          found = evidence.generations.flat_map { |generation| generation.shared.map { |one| judge(one) } }
          gravest_first(found.compact).uniq { |one| [one.kind, one.subject, one.location] }
        end

        private

        # Two generations may show the same descriptor, but only one of them its use.
        def gravest_first(found) = found.sort_by { |one| ForkSafety::Finding::SEVERITIES.index(one.severity) }

        def judge(shared)
          link = shared.open.link
          return event_source(shared, link.delete_prefix(ANONYMOUS)) if link.start_with?(ANONYMOUS)
          return socket(shared) if link.start_with?("socket:")
          return pipe(shared) if link.start_with?("pipe:")

          file(shared) if shared.open.regular?
        end

        def event_source(shared, what)
          name = EVENT_SOURCES[what] or return
          by_use(:shared_event_source, shared, name, name)
        end

        def socket(shared)
          socket = shared.socket
          return if socket.nil? || socket.kind == :idle || shared.io&.fetch(:ended)

          name = [shared.io ? shared.io[:type] : "a socket", ("to #{socket.peer}" if socket.peer)].compact.join(" ")
          case socket.kind
          when :listener
            name = "a socket that listens on #{socket.peer}"
            report(:shared_listener, shared, name, "#{name} is open in #{sharers(shared)}")
          when :datagram then report(:shared_datagram, shared, name, "#{name} is open in #{sharers(shared)}")
          else connection(shared, name)
          end
        end

        def connection(shared, name)
          tls = shared.io&.fetch(:tls)
          kind = tls ? :shared_tls : :shared_socket
          what = "the connection of #{name}#{" with its TLS session" if tls}"
          library = shared.io&.fetch(:library, nil)
          return by_use(kind, shared, name, what, advice: HELD) if library.nil? || shared.used_by_two?

          report(kind, shared, name, "#{what} is open in #{sharers(shared)}; #{library} does not use an inherited one",
                 severity: :note, advice: REPLACED)
        end

        def pipe(shared)
          return by_use(:shared_pipe, shared, "a pipe", "a pipe") unless shared.helper

          name = "a pipe to the helper #{shared.helper}"
          by_use(:shared_helper, shared, name, name)
        end

        def file(shared)
          open = shared.open
          name = "file #{File.basename(open.link.delete_suffix(" (deleted)"))}"
          if open.locked?
            return report(:inherited_lock, shared, name, "#{name} is locked by flock in #{sharers(shared)}")
          end
          return if open.append?
          return by_use(:shared_position, shared, name, name) if shared.uses.any?

          report(:shared_file, shared, name, "#{name} is open in #{sharers(shared)}")
        end

        # @param advice [String, nil] if no use was seen; nil: the kind's default
        def by_use(kind, shared, subject, what, advice: nil)
          what = "#{what} is open in #{sharers(shared)}"
          if shared.used_by_two?
            report(kind, shared, subject, "#{what}, and #{users(shared)}", severity: :error)
          else
            report(kind, shared, subject, "#{what}; #{unused(shared)}", severity: :warning, advice: advice)
          end
        end

        def users(shared)
          at = " at #{evidence.local(shared.use_site)}" if shared.use_site
          return "#{shared.uses.size} workers used it#{at}" if shared.uses.size > 1

          "a worker used it#{at} after another process had"
        end

        def unused(shared)
          return "one worker used it, and no other process was seen to" if shared.uses.any?
          return "no worker used it while it served" if shared.use_visible?

          "whether they use it cannot be seen, for it belongs to C code"
        end

        def sharers(shared) = "#{shared.holders.size} live processes (#{shared.holders.map(&:title).join(", ")})"

        def report(kind, shared, subject, message, severity: nil, advice: nil)
          finding(kind, subject: subject, message: message, location: shared.location(evidence), severity: severity,
                        advice: advice, details: { processes: shared.holders.map(&:title),
                                                   descriptor: shared.open.number, used_by: shared.uses.size })
        end
      end
    end
  end
end
