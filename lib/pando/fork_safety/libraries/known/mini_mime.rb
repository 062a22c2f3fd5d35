# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "mini_mime" do
  fine since: "1.1.3",
       note: "It reads without moving the position in its file, which parent and child share.",
       source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
  yours before: "1.1.3",
        note: "Parent and child share the position in its file: a look-up may find another type.",
        advice: "update it to 1.1.3",
        source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
end
