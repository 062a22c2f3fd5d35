# frozen_string_literal: true

require "test_helper"
require "pando/doctor/subject/payload"

# What the doctor's own server does otherwise than the user's.
class DoctorPayloadTest < Minitest::Test
  # Slow requests give it time enough to be let go.
  def test_the_mold_stays_until_it_has_been_looked_at
    server = Pando::Server.new(Pando::Config.load(["config.ru"]))
    payload = Pando::Doctor::Subject::Payload.new(server, nil, { patience: 1.0 })

    assert_equal(:auto, server.config.mold)
    assert_equal(:keep, payload.options.mold)
  end
end
