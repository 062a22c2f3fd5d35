# frozen_string_literal: true

require "test_helper"
require "support/in_child"
require "pando/doctor/subject/payload"

# What the doctor's own server does otherwise than the user's.
class DoctorPayloadTest < Minitest::Test
  include Support::InChild

  # Slow requests give it time enough to be let go.
  def test_the_mold_stays_until_it_has_been_looked_at
    server = Pando::Server.new(Pando::Config.load(["config.ru"]))
    payload = Pando::Doctor::Subject::Payload.new(server, nil, { patience: 1.0 })

    assert_equal(:auto, server.config.mold)
    assert_equal(:keep, payload.options.mold)
  end

  # Ruby forgets which line made an object that it has moved.
  def test_the_heap_is_not_compacted
    compactions = in_child do
      before = GC.stat(:compact_count)
      config = Pando::Config.load(["config.ru"])
      Pando::Doctor::Subject::Payload.new(Pando::Server.new(config), nil, { patience: 1.0 }).prepare
      GC.stat(:compact_count) - before
    end

    assert_equal(0, compactions)
  end
end
