# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "pando/refork/collector"

# Promise: with `gc major: :postpone` reforked workers do without full collections; whatever is forked from one, the
# next mold too, has them. Where Ruby does not know how, all is as ever, and that is told.
class FullCollectionsTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    allowed = -> { GC.config[:rgengc_allow_full_mark].to_s }
    run lambda { |env|
      return [200, {}, ["fine"]] unless GC.respond_to?(:config)

      own = IO.popen("-") { |child| child ? child.read : ($stdout.syswrite(allowed.call) && exit!(0)) }
      [200, {}, ["worker \#{allowed.call}, child \#{own}, mold \#{ENV["MOLD_ALLOWS"]}"]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 2
    refork :manual
    gc major: :postpone
    after_mold_fork { ENV["MOLD_ALLOWS"] = GC.config[:rgengc_allow_full_mark].to_s if GC.respond_to?(:config) }
  RUBY

  def setup
    super
    @server = serve(app: APP, config: CONFIG)
    @obstacle = Pando::Refork::MajorGC.obstacle
  end

  def test_workers_do_without
    skip @obstacle if @obstacle

    assert_equal "worker true, child true, mold true", @server.get("/").body
    2.times do
      @server.refork

      assert_equal "worker false, child true, mold true", @server.get("/").body
    end
    assert_empty @server.events("gc.deferral_unavailable")
  end

  def test_where_that_cannot_be_it_is_told
    skip "this Ruby knows how" unless @obstacle

    assert_equal "fine", @server.get("/").body
    told = @server.events("gc.deferral_unavailable")

    assert_equal(["gc major: :postpone"], told.map { |event| event["setting"] })
    assert_includes told.first["reason"], "3.4"
  end
end
