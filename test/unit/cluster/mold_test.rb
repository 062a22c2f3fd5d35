# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/payload"

# What a mold tells the monitor while it boots.
class ClusterBootingMoldTest < Minitest::Test
  # A mold without a process around it. Its reports and what its payload does are in one list.
  class Subject < Pando::Cluster::Mold
    attr_reader :done

    def initialize # rubocop:disable Lint/MissingSuper
      @done = []
      @context = Pando::Cluster::Context.new(payload: nil)
    end

    def report(kind, text: "") = @done << [kind, text]
    %i[bind_to_monitor name_process take_seat set_traps take_oom_score started].each do |name|
      define_method(name) { |*| nil }
    end
  end

  # One whose self-check has one step.
  class Payload < ClusterSupport::Payload
    def initialize(done) = super().tap { @done = done }
    def self_check = yield("openssl")
    def warm_up(_role) = @done << :warm_up
  end

  # An application may take as long as the boot may.
  def test_the_warm_up_is_no_step_of_the_self_check
    mold = Subject.new
    mold.boot { Payload.new(mold.done) }

    assert_equal [[:adopted, ""], [:checking, "openssl"], [:checking, ""], :warm_up, [:ready, "1"]], mold.done
  end
end
