# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/cluster/link"
require "pando/cluster/reactor/link"

module Pando
  module Cluster
    class Child
      # How a Child comes through an upgrade of the monitor. One that starts, of which there is none then, has
      # more to remember.
      #
      # @api private
      module Serialization
        # See Serializable.
        FIELDS = { state: %i[adopted ready leaving], deadline: :number, reason: :text, verdict: :text, unwanted: :text,
                   failure: :text, detail: :text, stack: :text, patient: :flag, overdue: :flag, suspect: :flag,
                   stuck: :flag, mute: :flag, excluded_as_source: :flag, signalled_deadline: :number,
                   replacement_reason: :text, declined_busy_since: :number, lines_due: :integer }.freeze

        # Builds one from a state.
        module Reader
          # @param record [Upgrade::Record] @param state [Upgrade::State] @param scoreboard [Sys::Scoreboard]
          # @return [Child]
          # @raise [Upgrade::Unreadable]
          def taken_up(record, state, scoreboard)
            role = record.choice(:role, Roster::ROLES)
            seat = record.integer(:seat, among: 0...scoreboard.seats)
            link = (role == :reactor ? Reactor::Link : Link).for_fd(state.take(record.integer(:link)))
            child = new(role, seat, record.integer(:slot), record.integer(:generation), link, scoreboard.row(seat), nil,
                        state.place(record.read(:pool, :integer) || 0))
            child.adopt(Sys::Pidfd.new(record.integer(:pid), state.take(record.integer(:pidfd))))
            child.take_up(record)
          end
        end

        def self.included(child)
          child.extend(Serializable, Reader)
          child.serialize(**FIELDS)
        end

        # @param state [Upgrade::State]
        def to_state(state)
          state.add("child", role: role, seat: seat, slot: slot, generation: generation, link: state.keep(link),
                             pid: pid, pidfd: state.keep(pidfd), pool: (pool if pool.positive?), **serialized_fields)
        end
      end
    end
  end
end
